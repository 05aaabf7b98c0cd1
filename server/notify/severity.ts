// How grave an event is, and which events end what another one began. Tables, so that people can read them.
import { SEVERITIES, type Severity } from '../../shared/model/notifications.ts'

/** Warnings that someone has to look at now. Other warnings are `warning`, all else is `info`. */
export const CRITICAL: ReadonlySet<string> = new Set([
  ...['Degraded', 'ClaimUnclear', 'AnotherAgentActive', 'RestorePending', 'BreakGlassToken', 'RefreshTokenReused'],
])

/** Events with which something is over, and the reasons that they end. Only a reason that is named here is ever
 *  resolved. */
export const ENDS: Readonly<Record<string, readonly string[]>> = {
  Healthy: ['Degraded'],
  ClusterOnline: ['ClusterOffline'],
  ClusterReadmitted: ['ClusterRevoked'],
  RenderRecovered: ['RenderFailed'],
  RepositoryRecovered: ['RepositoryFailed'],
  Confirmed: ['ConfirmationNeeded', 'ConfirmationPending', 'PruneBlocked'],
  PruneConfirmed: ['PruneBlocked', 'ConfirmationPending'],
  HookSucceeded: ['HookFailed'],
  Released: ['Held'],
  Resumed: ['Suspended'],
  RestoreConfirmed: ['RestorePending'],
  DeletionTakenBack: ['DeletionRequested'],
  Removed: ['Degraded', 'HookFailed', 'PruneBlocked', 'ConfirmationPending', 'ConfirmationNeeded'],
  ServiceRemoved: ['Degraded', 'HookFailed', 'PruneBlocked', 'ConfirmationPending', 'ConfirmationNeeded'],
  ServiceDeleted: ['RenderFailed', 'ConfirmationNeeded', 'DeletionRequested'],
  ClusterDeleted: ['ClusterOffline', 'ClusterRevoked'],
}
const ENDED: ReadonlySet<string> = new Set(Object.values(ENDS).flat())

/** Whether a later event can end it. */
export const canEnd = (reason: string): boolean => ENDED.has(reason)

export const severityOf = (type: string, reason: string): Severity =>
  CRITICAL.has(reason) ? 'critical' : type === 'Warning' ? 'warning' : 'info'

export const isAtLeast = (severity: Severity, least: Severity): boolean => SEVERITIES.indexOf(severity) >= SEVERITIES.indexOf(least)
