// Everything that the simulation throws at the sync, by name; it counts what really happened.
export const NETWORK_FAULTS = [
  'drop_request',
  'drop_answer',
  'duplicate',
  'delay_request',
  'delay_answer',
  'reorder',
  'truncate',
  'cut_answer',
  'flip',
  'replay',
  'crossed_answer',
  'forged_page',
  'error_500',
  'retry_after',
  'expired_session',
  'html',
  'protocol_426',
] as const

export const STEP_FAULTS = [
  'kill_agent',
  'kill_agent_at_await',
  'kill_server',
  'kill_server_at_step',
  'clock_jump_agent',
  'clock_jump_server',
  'rogue_edit',
  'bit_flip_on_disk',
  'damaged_replica',
  'lost_replica',
  'lost_wal',
  'lost_state',
  'power_loss_agent',
  'power_loss_server',
  'damaged_shard',
  'lost_shard',
  'restored_server',
  'forked_server',
  'two_agents',
  'agent_set_back',
  'fault_in_parts',
  'compaction',
  'key_rotation',
  'disk_full_agent',
  'disk_full_server',
  'poison_status',
  'poison_desired',
  'vanished_row',
  'bad_agent',
  'kube_failing',
  'kube_slow',
  'kube_watch_cut',
  'kube_watch_lag',
  'drift',
] as const

export const FAULT_KINDS = [...NETWORK_FAULTS, ...STEP_FAULTS] as const
export type NetworkFault = (typeof NETWORK_FAULTS)[number]
export type FaultKind = (typeof FAULT_KINDS)[number]
export type FaultCounts = Record<FaultKind, number>

export const noFaults = (): FaultCounts => Object.fromEntries(FAULT_KINDS.map((kind) => [kind, 0])) as FaultCounts
