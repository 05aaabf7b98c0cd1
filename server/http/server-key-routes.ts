// The key that the server signs with (RP7).
import { Elysia } from 'elysia'
import { listOf, type ServerKeyView, serverKeyViewSchema } from '../../shared/model/views.ts'
import { fingerprint } from '../../shared/runtime/keys.ts'
import { fleetEvent } from '../fleet/fleet-event.ts'
import type { AdminDeps } from './deps.ts'

export function serverKeyRoutes(deps: AdminDeps) {
  const { store, serverKeys, clock } = deps
  const views = () => ({ items: serverKeyViews(serverKeys.history), continue: null })
  return new Elysia({ tags: ['access'] })
    .get('/server-keys', views, {
      response: listOf(serverKeyViewSchema),
      detail: { summary: 'The key that signs, and those before it, oldest first' },
    })
    .post(
      '/server-keys/rotate',
      async ({ request }) => {
        const by = deps.principal(request).name
        const before = serverKeys.fingerprint
        serverKeys.rotate(clock.nowMs())
        const message = `by ${by}: ${before} signs no more, ${serverKeys.fingerprint} does; agents follow when they next make contact`
        await store.appendEvents([fleetEvent(clock.nowMs(), 'Normal', 'ServerKeyRotated', message, {})])
        return views()
      },
      {
        response: listOf(serverKeyViewSchema),
        detail: { summary: 'Sign with a new key from now on; agents follow the link that the old one signs last' },
      },
    )
}

const serverKeyViews = (history: AdminDeps['serverKeys']['history']): ServerKeyView[] =>
  history.map(({ publicKey, sinceMs }, index) => ({
    fingerprint: fingerprint(publicKey),
    publicKey,
    state: index === history.length - 1 ? 'signing' : 'earlier',
    sinceMs,
  }))
