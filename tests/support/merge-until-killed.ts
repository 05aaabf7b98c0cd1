// A process that does nothing but merge pages, for a test that kills it: `bun merge-until-killed.ts REPLICA CLUSTER
// SERVER_KEY PAGES`. Pages lie in a folder, in rounds that each begin with a bootstrap; it begins with the one that its
// cursor needs.
import { readdirSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { createCrdtReplica } from '../../agent/replica/crdt-replica.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'

const [path = '', clusterId = '', serverKey = '', folder = ''] = process.argv.slice(2)
const pages = readdirSync(folder).sort()
const replica = createCrdtReplica({ path, clusterId, serverKeys: () => [serverKey], log: silentLogger })
for (;;)
  for (const page of pages) {
    replica.applyPage(readFileSync(join(folder, page)))
    writeSync(1, 'merged a page\n')
  }
