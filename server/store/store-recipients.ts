// Recipient keys of agents: replaced by the agent, on demand of a person (SL10, SL11).

import { appendEvents } from './status/store-events.ts'
import type { Store } from './store.ts'
import type { StoreDb } from './store-db.ts'

export function createRecipientStore(db: StoreDb): Pick<Store, 'changeRecipient' | 'askForRecipient'> {
  return {
    changeRecipient: async ({ agentId, before, recipient, event }) => {
      await db.write(async (tx) => {
        const { sql: trx, changes, audit } = tx
        const changed = await trx
          .updateTable('agents')
          .set({ recipient, rotate_ms: 0 })
          .where('agent_id', '=', agentId)
          .where('recipient', '=', before)
          .returning('cluster_id')
          .executeTakeFirst()
        if (changed === undefined) return
        await trx
          .updateTable('clusters')
          .set((eb) => ({ epoch: eb('epoch', '+', 1) }))
          .where('cluster_id', '=', changed.cluster_id)
          .execute()
        await appendEvents(tx, tx.engine, [event])
        changes.add({ topic: 'cluster', cluster: changed.cluster_id })
        audit.add({ verb: 'rotate', kind: 'Agent', name: agentId, detail: event.message })
      })
    },
    askForRecipient: (clusterId, atMs) =>
      db.write(async ({ sql: trx, changes, audit }) => {
        const asked = await trx
          .updateTable('agents')
          .set({ rotate_ms: atMs })
          .where('cluster_id', '=', clusterId)
          .returning('agent_id')
          .executeTakeFirst()
        if (asked === undefined) return false
        changes.add({ topic: 'cluster', cluster: clusterId })
        audit.add({ verb: 'rotate', kind: 'Agent', name: asked.agent_id, detail: 'another recipient key is asked for' })
        return true
      }),
  }
}
