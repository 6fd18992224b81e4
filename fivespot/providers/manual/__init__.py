"""ManualSchedule: a switch, or another schedule that overrides take precedence over."""
