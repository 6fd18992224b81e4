"""CapitalMarketsSchedule: active while a market is open, by a calendar of sessions, holidays and special dates."""
