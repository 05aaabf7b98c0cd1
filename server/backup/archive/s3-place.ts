// Archives of backups in a bucket. Bun's own client signs the requests (SigV4) and uploads in parts, so the size of an
// archive has no bearing on memory.
import { S3Client } from 'bun'
import { AppError } from '../../../shared/runtime/error.ts'
import { describeError } from '../../../shared/runtime/loop.ts'
import { type BackupPlace, isArchiveName } from './stored.ts'

export interface S3Target {
  bucket: string
  /** Ends with a slash, or is empty. */
  prefix: string
  /** Null means that of Amazon. */
  endpoint: string | null
  region: string
  accessKeyId: string
  secretAccessKey: string
  sessionToken: string | null
}

/** A storage takes at most 10,000 parts: archives up to 160 GB. */
const PART_BYTES = 16 * 1_024 * 1_024
const RETRIES = 3

export function s3Place(target: S3Target): BackupPlace {
  const { bucket, prefix, endpoint, region, accessKeyId, secretAccessKey, sessionToken } = target
  const client = new S3Client({
    ...{ bucket, region, accessKeyId, secretAccessKey },
    ...(endpoint === null ? {} : { endpoint }),
    ...(sessionToken === null ? {} : { sessionToken }),
  })
  const text = `s3://${bucket}/${prefix}`
  const told = async <T>(doing: string, work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      throw error instanceof AppError ? error : failed(doing, text, error)
    }
  }
  // By a list: the answer to a HEAD has no body, and so an error of it no code.
  const exists = async (name: string): Promise<boolean> => {
    const { contents = [] } = await client.list({ prefix: prefix + name, maxKeys: 1 })
    return contents.some(({ key }) => key === prefix + name)
  }
  return {
    text,
    remote: true,
    list: () =>
      told('list backups', async () => {
        const found: Array<{ name: string; bytes: number }> = []
        let startAfter: string | undefined
        for (;;) {
          const page = await client.list({ prefix, ...(startAfter === undefined ? {} : { startAfter }) })
          const contents = page.contents ?? []
          for (const { key, size } of contents) {
            const name = key.slice(prefix.length)
            if (key.startsWith(prefix) && isArchiveName(name)) found.push({ name, bytes: size ?? 0 })
          }
          startAfter = contents.at(-1)?.key
          if (page.isTruncated !== true || startAfter === undefined) return found.sort((a, b) => (a.name < b.name ? -1 : 1))
        }
      }),
    write: (name, chunks) =>
      told('back up', async () => {
        if (await exists(name)) throw new AppError('target_exists', { doing: 'back up', detail: `${text}${name} exists` })
        const writer = client
          .file(prefix + name)
          .writer({ partSize: PART_BYTES, queueSize: 2, retry: RETRIES, type: 'application/octet-stream' })
        let [bytes, waiting] = [0, 0]
        try {
          for await (const chunk of chunks) {
            writer.write(chunk)
            bytes += chunk.length
            waiting += chunk.length
            if (waiting < PART_BYTES) continue
            await writer.flush() // else all of it would wait in memory for a slow link
            waiting = 0
          }
        } catch (error) {
          await Promise.resolve(writer.end(error instanceof Error ? error : new Error(String(error)))).catch(() => {})
          await client.delete(prefix + name).catch(() => {}) // Bun's writer stores what it has, also at an end with an error
          throw error
        }
        await writer.end()
        return bytes
      }),
    read: (name) =>
      told('read the backup', async () => {
        if (!(await exists(name)))
          throw new AppError('backup_unusable', { doing: 'read the backup', detail: `${text}${name} does not exist` })
        return client.file(prefix + name).stream()
      }),
    remove: (name) => told('remove an old backup', () => client.delete(prefix + name)),
  }
}

/** The code of the storage, such as AccessDenied or NoSuchBucket, says most. */
function failed(doing: string, text: string, error: unknown): AppError {
  const code = error instanceof Error && 'code' in error ? `${String(error.code)}: ` : ''
  return new AppError(
    'unavailable',
    {
      doing,
      detail: `${text}: ${code}${describeError(error)}`,
      remedy: 'Check the bucket, the endpoint, the region and the rights of the credentials (list, get, put, delete).',
    },
    { cause: error },
  )
}
