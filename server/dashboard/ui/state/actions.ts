// The action that a person asked for, wherever the button, the command or the row is. One dialog shows it over any
// page.
import { signal } from '@preact/signals'
import type { AskedRef } from '../../../../shared/protocol/ask.ts'

export interface ServiceRef {
  project: string
  name: string
}
/** Absent service: all services of the cluster; absent cluster: all clusters of the service. */
export interface Scope {
  service?: ServiceRef
  cluster?: string
}

export type ActionAsked =
  | ({ kind: 'suspend' | 'resume' } & Scope)
  | { kind: 'sync'; service: ServiceRef; cluster?: string }
  | { kind: 'refresh'; project: string; name: string }
  | { kind: 'restart'; cluster: string; project: string; service: string; ref: AskedRef }

export const actionAsked = signal<ActionAsked | null>(null)
export const askAction = (action: ActionAsked): void => {
  actionAsked.value = action
}
