// A real S3-compatible storage as a process: SeaweedFS of scripts/setup --storage, with one bucket, a key that may
// list, get, put and delete in it, and one that may only read.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort, startChild, waitUntil } from '../../scripts/local-cluster/child-process.ts'
import { ROOT } from './source-files.ts'
import { tempDir } from './temp-dir.ts'

export interface RealS3 {
  endpoint: string
  bucket: string
  /** Environments with credentials. */
  owner: Record<string, string>
  reader: Record<string, string>
  stop(): Promise<void>
}

const WEED = join(ROOT, 'build/storage/weed')
const BUCKET = 'backups'
const OWNER = { accessKey: 'AKIAOWNER', secretKey: 'secret-of-the-owner' }
const READER = { accessKey: 'AKIAREADER', secretKey: 'secret-of-the-reader' }
const environment = ({ accessKey, secretKey }: typeof OWNER) => ({ AWS_ACCESS_KEY_ID: accessKey, AWS_SECRET_ACCESS_KEY: secretKey })

export async function startRealS3(): Promise<RealS3> {
  if (!existsSync(WEED)) throw new Error(`${WEED} is missing: run scripts/setup --storage`)
  const dir = tempDir()
  mkdirSync(join(dir, 'data'))
  const identities = [
    { name: 'owner', credentials: [OWNER], actions: ['Read', 'Write', 'List'].map((action) => `${action}:${BUCKET}`) },
    { name: 'reader', credentials: [READER], actions: ['Read', 'List'].map((action) => `${action}:${BUCKET}`) },
  ]
  writeFileSync(join(dir, 's3.json'), JSON.stringify({ identities }))
  // Each part has a port for gRPC, too; by default that is 10,000 above, where there may be none.
  const ports = Object.fromEntries(['master', 'volume', 'filer', 's3'].map((part) => [part, freePort()]))
  const flags = Object.entries(ports).flatMap(([part, port]) => [`-${part}.port=${port}`, `-${part}.port.grpc=${freePort()}`])
  const child = startChild(
    [
      ...[
        WEED,
        'server',
        `-dir=${join(dir, 'data')}`,
        '-ip=127.0.0.1',
        '-ip.bind=127.0.0.1',
        '-filer',
        '-s3',
        `-s3.config=${join(dir, 's3.json')}`,
      ],
      ...['-master.volumeSizeLimitMB=64', '-volume.max=16', ...flags],
    ],
    join(dir, 'log'),
  )
  const endpoint = `http://127.0.0.1:${ports['s3']}`
  await waitUntil('SeaweedFS answers', async () => (await fetch(endpoint)).status === 403, { child })
  // The filer keeps each bucket as a folder.
  await waitUntil('the bucket', async () => (await fetch(`http://127.0.0.1:${ports['filer']}/buckets/${BUCKET}/`, { method: 'POST' })).ok, {
    child,
  })
  return { endpoint, bucket: BUCKET, owner: environment(OWNER), reader: environment(READER), stop: () => child.kill() }
}
