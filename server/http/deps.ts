// The dependencies of the admin routes.
import type { QuestionKind } from '../../shared/protocol/ask.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { ApiTokens } from '../access/api-tokens.ts'
import type { AuditTrail } from '../access/audit-trail.ts'
import type { Authorizer } from '../access/authorizer.ts'
import type { Callers } from '../access/callers.ts'
import type { ConfigKeys } from '../access/config-keys.ts'
import type { Principal } from '../access/principal.ts'
import type { SecretRotation } from '../access/rotate-secrets.ts'
import type { ServerKeys } from '../access/server-keys.ts'
import type { FleetActions } from '../actions/port.ts'
import type { RemovalPlans } from '../actions/removal-plans.ts'
import type { RestoreActions } from '../actions/restore-actions.ts'
import type { SealActions } from '../actions/seal-actions.ts'
import type { Asks } from '../ask/asks.ts'
import type { ObjectOwners } from '../ingest/object-owners.ts'
import type { Previews } from '../ingest/render/previews.ts'
import type { RenderNow } from '../ingest/render/render-now.ts'
import type { Notifier } from '../notify/notifier.ts'
import type { CheckPatches } from '../render/patch/patches.ts'
import type { Store } from '../store/store.ts'
import type { FleetViews } from './fleet-views.ts'
import type { SecretProbes } from './secret-probes.ts'

export interface AdminDeps {
  store: Store
  trail: AuditTrail
  views: FleetViews
  actions: FleetActions
  removals: RemovalPlans
  owners: ObjectOwners
  clock: Clock
  /** Its fingerprint is printed into join tokens. */
  serverKeys: Pick<ServerKeys, 'fingerprint' | 'publicKeys' | 'sign' | 'history' | 'rotate' | 'revoke' | 'rotateMac'>
  tokens: Pick<ApiTokens, 'create' | 'exchange' | 'revoke'>
  callers: Pick<Callers, 'ended' | 'hasExpired'>
  /** Seals secrets of Configs. */
  secrets: ConfigKeys
  /** CG7: rotates the keys of secrets. */
  rotation: SecretRotation
  /** CG14: limits dry runs of Configs with secrets. */
  probes: SecretProbes
  /** SL9: begins sealing, and says what is left in clear. */
  seals: SealActions
  renders: RenderNow
  previews: Previews
  /** Programs that render are confined to a sandbox. */
  isConfined: boolean
  notifier: Pick<Notifier, 'test' | 'retry'>
  checkPatches: CheckPatches
  restore: RestoreActions
  /** Absent means that questions to clusters are off. */
  asks?: Asks
  /** Told of each question to a cluster; `result`: `asked`, or the code of a refusal. */
  onQuestion?(kind: QuestionKind, result: string): void
  /** URL for the forge, and the mark of its secret (WH3); null when the repository is unknown. */
  webhook(project: string, name: string): Promise<{ url: string; secret: string } | null>
  /** Another secret, which is shown once. */
  newWebhookSecret(project: string, name: string): Promise<{ url: string; secret: string } | null>
  version(): Record<string, unknown> & { version: string }
  /** Aborts when the server stops: streams end. */
  stopping: AbortSignal
  /** The sender of this request; throws `unauthorized` if there is none. */
  principal(request: Request): Principal
  /** Answers questions about the rights of a caller. */
  authorizer: Authorizer
}
