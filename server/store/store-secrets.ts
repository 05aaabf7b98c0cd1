// Notes about secrets beside the sealed values: how far a rotation is, the state of external sources, and the
// number of each webhook secret.
import type { Store } from './store.ts'
import type { StoreDb } from './store-db.ts'

type SecretStore = Pick<
  Store,
  'secretRotation' | 'setSecretRotation' | 'configState' | 'setConfigState' | 'webhookNumber' | 'nextWebhookNumber'
>

const ROTATION = 'secret_rotation'

export function createSecretStore(db: StoreDb): SecretStore {
  return {
    async secretRotation() {
      const held = await db.read.selectFrom('meta').select('value').where('key', '=', ROTATION).executeTakeFirst()
      return held?.value ?? null
    },

    setSecretRotation: (value) =>
      db.write(async ({ sql: trx }) => {
        await trx
          .insertInto('meta')
          .values({ key: ROTATION, value })
          .onConflict((on) => on.column('key').doUpdateSet({ value }))
          .execute()
      }),

    async configState(project, name) {
      const held = await db.read
        .selectFrom('config_states')
        .select('doc')
        .where('project', '=', project)
        .where('name', '=', name)
        .executeTakeFirst()
      return held?.doc ?? null
    },

    setConfigState: (project, name, doc) =>
      db.write(async ({ sql: trx, changes }) => {
        const ofIt = trx.selectFrom('config_states').select('doc').where('project', '=', project).where('name', '=', name)
        if ((await ofIt.executeTakeFirst())?.doc === doc) return
        await trx
          .insertInto('config_states')
          .values({ project, name, doc })
          .onConflict((on) => on.columns(['project', 'name']).doUpdateSet({ doc }))
          .execute()
        changes.add({ topic: 'resource', project, keys: [`Config/${project}/${name}`] })
      }),

    async webhookNumber(uid) {
      const held = await db.read.selectFrom('webhook_secrets').select('number').where('uid', '=', uid).executeTakeFirst()
      return held?.number ?? 0
    },

    nextWebhookNumber: (key, uid) =>
      db.write(async ({ sql: trx, audit }) => {
        const held = await trx.selectFrom('webhook_secrets').select('number').where('uid', '=', uid).executeTakeFirst()
        const number = (held?.number ?? 0) + 1
        await trx
          .insertInto('webhook_secrets')
          .values({ uid, number })
          .onConflict((on) => on.column('uid').doUpdateSet({ number }))
          .execute()
        audit.add({ verb: 'webhook:create', ...key })
        return number
      }),
  }
}
