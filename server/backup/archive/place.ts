// Where archives of backups are kept: a folder, or a bucket of S3-compatible storage. One place belongs to one server.
import { resolve } from 'node:path'
import { AppError } from '../../../shared/runtime/error.ts'
import { folderPlace } from './folder-place.ts'
import { type S3Target, s3Place } from './s3-place.ts'
import { type BackupPlace, isArchiveName } from './stored.ts'

type Env = Readonly<Record<string, string | undefined>>

export const isS3 = (text: string): boolean => text.startsWith('s3:')

/** Throws `bad_options`. */
export const openPlace = (text: string, env: Env): BackupPlace =>
  isS3(text) ? s3Place(readS3(text, env, true)) : folderPlace(resolve(text))

/** One archive: its path, or s3://BUCKET/PREFIX/NAME. */
export function openArchive(text: string, env: Env): { place: BackupPlace; name: string } {
  if (!isS3(text)) {
    const path = resolve(text)
    const cut = path.lastIndexOf('/')
    return { place: folderPlace(path.slice(0, cut) || '/'), name: path.slice(cut + 1) }
  }
  const target = readS3(text, env, false)
  const cut = target.prefix.lastIndexOf('/')
  const name = target.prefix.slice(cut + 1)
  if (!isArchiveName(name)) throw wrong(text, 'the last part of the path is not the name of an archive')
  return { place: s3Place({ ...target, prefix: target.prefix.slice(0, cut + 1) }), name }
}

const FORM = 's3://BUCKET/PREFIX?endpoint=URL&region=REGION'

function readS3(text: string, env: Env, isPlace: boolean): S3Target {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || url.hostname === '' || url.username !== '' || url.password !== '' || url.port !== '')
    throw wrong(text, `expected ${FORM}`)
  const unknown = [...url.searchParams.keys()].find((name) => name !== 'endpoint' && name !== 'region')
  if (unknown !== undefined) throw wrong(text, `unknown parameter ${unknown}; expected ${FORM}`)
  const endpoint = url.searchParams.get('endpoint') ?? env['AWS_ENDPOINT_URL_S3'] ?? env['AWS_ENDPOINT_URL'] ?? null
  if (endpoint !== null && !/^https?:\/\/[^/?#@]+\/?$/.test(endpoint)) throw wrong(text, `the endpoint ${endpoint} is not a URL of a host`)
  const [accessKeyId, secretAccessKey] = [env['AWS_ACCESS_KEY_ID'] ?? '', env['AWS_SECRET_ACCESS_KEY'] ?? '']
  if (accessKeyId === '' || secretAccessKey === '')
    throw wrong(text, 'no credentials', 'Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment.')
  const path = decodeURIComponent(url.pathname.slice(1))
  return {
    bucket: url.hostname,
    prefix: isPlace && path !== '' && !path.endsWith('/') ? `${path}/` : path,
    endpoint,
    region: url.searchParams.get('region') ?? env['AWS_REGION'] ?? env['AWS_DEFAULT_REGION'] ?? 'us-east-1',
    accessKeyId,
    secretAccessKey,
    sessionToken: env['AWS_SESSION_TOKEN'] ?? null,
  }
}

const wrong = (text: string, detail: string, remedy = `Use ${FORM}; docs/how-to/back-up-and-restore.md has examples.`): AppError =>
  new AppError('bad_options', { doing: `open ${text.split('?')[0]}`, detail, remedy })
