"""TimeBasedSpotSchedule: active in weekly hours and windows of a time zone."""
