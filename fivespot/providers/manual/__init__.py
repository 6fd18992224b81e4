"""ManualSchedule: active while somebody says so, or while another schedule does and no override says otherwise."""
