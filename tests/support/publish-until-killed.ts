// A process of its own for publish-replay.test.ts: publishes twice into the folder given and dies where the second one
// enters the shard.
import { join } from 'node:path'
import { publishRevisions } from '../../server/desired/publisher.ts'
import { createFileContentStore } from '../../server/store/content/file-content-store.ts'
import { openSqliteStore } from '../../server/store/kysely-store.ts'
import { serviceRowSchema } from '../../shared/model/desired.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { joinCluster } from './store-fixtures.ts'
import { objectRows, openTestShards, serviceDoc, WEB } from './sync-kit.ts'

const dir = process.argv[2] ?? ''
const store = await openSqliteStore(join(dir, 'fleet.sqlite'), { clock: systemClock, random: seededRandom(2) })
const content = createFileContentStore(join(dir, 'content'), systemClock)
const { shards } = openTestShards(join(dir, 'shards'), { shardCount: 1 })
const clusterId = await joinCluster(store, '1')
process.stdout.write(`${clusterId}\n`)

const publish = (value: string, into: typeof shards) => {
  const objects = objectRows(WEB, { a: value })
  const doc = serviceRowSchema.parse(JSON.parse(serviceDoc(objects)))
  return publishRevisions({ store, content, shards: into }, [{ ...WEB, clusterId, doc, placedBy: '{}', objects }])
}
await publish('1', shards)
const deadly: typeof shards = Object.assign(Object.create(shards), {
  shardOf: () => 0,
  writeRevisions: () => process.kill(process.pid, 'SIGKILL'),
})
await publish('2', deadly)
