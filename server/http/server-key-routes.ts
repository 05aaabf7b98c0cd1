// The keys of the server: the one that signs (RP7), those that agents trust no more (RP9), the one of MACs, and those
// that seal secrets (CG7).
import { Elysia } from 'elysia'
import { rotationAnswerSchema, sealRequestSchema, sealViewSchema } from '../../shared/model/sealing-views.ts'
import { keyRevokeSchema, listOf, resealAnswerSchema, type ServerKeyView, serverKeyViewSchema } from '../../shared/model/views.ts'
import { fingerprint } from '../../shared/runtime/keys.ts'
import { fleetEvent, type SaidEvent } from '../fleet/fleet-event.ts'
import { news } from '../messages/event-messages.ts'
import { answers, fails } from './declared.ts'
import type { AdminDeps } from './deps.ts'

export function serverKeyRoutes(deps: AdminDeps) {
  const { store, serverKeys, secrets, rotation, clock, trail } = deps
  /** Keys are files: the entry is committed before they change, and another one if they did not. */
  const recorded = async <T>(verb: string, detail: string, act: () => T | Promise<T>): Promise<T> => {
    await trail.record({ verb, kind: 'ServerKey', detail, result: 'started' })
    try {
      return await act()
    } catch (error) {
      await trail.record({ verb, kind: 'ServerKey', detail, result: 'failed' })
      throw error
    }
  }
  const views = () => ({ items: serverKeyViews(serverKeys.history), continue: null })
  const tell = (said: SaidEvent) => store.appendEvents([fleetEvent(clock.nowMs(), said, {})])
  return new Elysia({ tags: ['access'] })
    .get('/server-keys', views, {
      response: listOf(serverKeyViewSchema),
      detail: { summary: 'Current and earlier signing keys, oldest first' },
    })
    .post(
      '/server-keys/rotate',
      async ({ request }) => {
        const by = deps.principal(request).name
        const before = serverKeys.fingerprint
        await recorded('rotate', `signing key ${before}`, () => serverKeys.rotate(clock.nowMs()))
        await tell(news('ServerKeyRotated', { by, before, after: serverKeys.fingerprint }))
        return views()
      },
      {
        response: listOf(serverKeyViewSchema),
        detail: { summary: 'Replace the signing key; agents follow automatically' },
      },
    )
    .post(
      '/server-keys/revoke',
      async ({ body, request }) => {
        const before = body.before ?? serverKeys.fingerprint
        await recorded('revoke', `keys before ${before}`, () => serverKeys.revoke(before, clock.nowMs()))
        const deleted = await deleteTokensBefore(deps, serverKeys.history.find(({ isRevoked }) => !isRevoked)?.sinceMs ?? 0)
        const by = deps.principal(request).name
        await tell(news('ServerKeysRevoked', { by, before, count: deleted }))
        return views()
      },
      {
        body: keyRevokeSchema,
        response: listOf(serverKeyViewSchema),
        detail: {
          summary: 'Revoke the keys before a key (default: the current signing key); deletes join tokens of their time',
          ...fails(404, 409),
        },
      },
    )
    .post(
      '/server-keys/rotate-mac',
      async ({ request, set }) => {
        await recorded('rotate', 'key of sessions and webhooks', () => serverKeys.rotateMac())
        const by = deps.principal(request).name
        await tell(news('MacKeyRotated', { by }))
        set.status = 204
      },
      {
        detail: {
          summary: 'Replace the key of sessions and webhook secrets; earlier secrets are accepted until the next rotation',
          responses: answers({ 204: null }),
        },
      },
    )
    .post(
      '/server-keys/rotate-secrets',
      async ({ request }) => {
        await recorded('rotate', ROTATED, () => rotation.begin(deps.principal(request).name))
        await rotation.settled()
        const { configs = 0, secrets = 0, unopened = 0 } = rotation.view() ?? {}
        return { configs, secrets, unopened }
      },
      {
        response: resealAnswerSchema,
        detail: { summary: 'As POST /secrets/rotate-key; answers when all is sealed', deprecated: true },
      },
    )
    .get('/secrets/rotate-key', () => ({ rotation: rotation.view(), masterKey: secrets.master }), {
      response: rotationAnswerSchema,
      detail: { summary: 'How far the newest rotation of the keys of secrets is' },
    })
    .post(
      '/secrets/rotate-key',
      async ({ request, set }) => {
        const begun = await recorded('rotate', ROTATED, () => rotation.begin(deps.principal(request).name))
        set.status = 202
        return { rotation: begun, masterKey: secrets.master }
      },
      {
        response: { 202: rotationAnswerSchema },
        detail: { summary: 'Seal the secrets of all Configs anew, each under another data key, and destroy the earlier master key' },
      },
    )
    .get('/secrets/seal', () => deps.seals.view(), {
      response: sealViewSchema,
      detail: { summary: 'Whether rendered Secrets are sealed to their clusters, and what is left in clear' },
    })
    .post(
      '/secrets/seal',
      async ({ request, body: { newKey } }) => {
        const what = newKey ? 'rows of all services, with a new key' : 'rows of all services'
        const view = await recorded('seal', what, () => deps.seals.begin(newKey))
        await tell(news('RowsSealed', { by: deps.principal(request).name }))
        return view
      },
      {
        body: sealRequestSchema,
        response: sealViewSchema,
        detail: { summary: 'Seal rendered Secrets from now on, and remove what was written in clear before' },
      },
    )
}

const ROTATED = 'keys that seal secrets of Configs'

/** They vouch for a key that is trusted no more. */
async function deleteTokensBefore({ store }: Pick<AdminDeps, 'store'>, beforeMs: number): Promise<number> {
  const old = (await store.listJoinTokens()).filter(({ createdMs }) => createdMs < beforeMs)
  for (const { id } of old) await store.deleteJoinToken(id)
  return old.length
}

const serverKeyViews = (history: AdminDeps['serverKeys']['history']): ServerKeyView[] =>
  history.map(({ publicKey, sinceMs, isRevoked }, index) => ({
    fingerprint: fingerprint(publicKey),
    publicKey,
    state: isRevoked ? 'revoked' : index === history.length - 1 ? 'signing' : 'earlier',
    sinceMs,
  }))
