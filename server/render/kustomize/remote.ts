// Remote bases: the addresses that kustomizations write, read with kustomize's own grammar
// (api/internal/git/repospec.go of v5). Pure, and makes no request.
import { z } from 'zod'
import { canonicalJson, sha256Hex } from '../../../shared/kube/canonical.ts'
import { gitUrlSchema, webUrlSchema } from '../../../shared/model/sources.ts'
import { isAddress } from './paths.ts'

/** KU14. Different repositories and files of one render, and remote bases in remote bases. */
export const REMOTE_BASES_MAX = 50
export const REMOTE_DEPTH_MAX = 5
/** Fields of a kustomization that take remote bases. */
export const REMOTE_FIELDS: readonly string[] = ['resources', 'bases', 'components']

/** A remote base: a Git repository at a ref, or one file. */
export const remoteBaseSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('git'), url: gitUrlSchema, ref: z.string().min(1).max(255), submodules: z.boolean() }),
  z.strictObject({ kind: z.literal('file'), url: webUrlSchema }),
])
export type RemoteBase = z.infer<typeof remoteBaseSchema>

export type RemoteAddress =
  /** `path`: the folder with the kustomization; '' for a file, and for the root of a repository. */
  { kind: 'remote'; base: RemoteBase; path: string } | { kind: 'refused'; message: string }

/** Names a base wherever it is looked up; `parseBaseName` reads it. */
export const baseName = (base: RemoteBase): string => canonicalJson(base)

/** Null means that the text names no base. */
export function parseBaseName(name: string): RemoteBase | null {
  try {
    return remoteBaseSchema.safeParse(JSON.parse(name)).data ?? null
  } catch {
    return null
  }
}

/** For people and for the revisions of a release: different for different bases, without the query of a file, which may
 *  hold a token. */
export function shownBase(base: RemoteBase): string {
  if (base.kind === 'git') return `${base.url}${base.ref === HEAD ? '' : `?ref=${base.ref}`}${base.submodules ? ' with submodules' : ''}`
  const query = base.url.indexOf('?')
  return query < 0 ? base.url : `${base.url.slice(0, query)}?…#${sha256Hex(base.url).slice(0, 8)}`
}

/** A full commit id never moves. */
export const isPinned = (base: RemoteBase): boolean => base.kind === 'git' && /^([0-9a-f]{40}|[0-9a-f]{64})$/.test(base.ref)

/** A name for the folder of a base that people can recognize, different for different bases. */
export function baseFolder(base: RemoteBase): string {
  const slug = shownBase(base)
    .replace(/^\w+:\/\//, '')
    .replace('?ref=', '@')
    .replace(/[^\w.@-]+/g, '_')
    .slice(0, SLUG_LENGTH)
  return `${slug}-${sha256Hex(baseName(base)).slice(0, 8)}`
}
const SLUG_LENGTH = 100

const HEAD = 'HEAD'
const SCHEMES = ['ssh://', 'https://', 'http://', 'file://'] as const

/** KU12: null if kustomize takes the text for a local path. `mayBeFile`: the field takes files, too. */
export function parseRemote(text: string, mayBeFile: boolean): RemoteAddress | null {
  const [address = '', query = ''] = split(text, '?')
  const unforced = address.replace(/^git::/i, '')
  const scheme = SCHEMES.find((one) => unforced.toLowerCase().startsWith(one)) ?? ''
  const afterScheme = unforced.slice(scheme.length)
  const user = /^[a-zA-Z][a-zA-Z0-9-]*@/.exec(afterScheme)?.[0] ?? ''
  const hostAndPath = afterScheme.slice(user.length)
  const isGithub = /^github\.com[/:]/i.test(hostAndPath)
  const isScp = scheme === '' && (user !== '' || isGithub)
  const isWeb = scheme === 'https://' || scheme === 'http://'
  const wrong = (message: string) => (scheme === '' && !isAddress(text) ? null : refused(message))
  if (scheme === '' && !isScp) return wrong('expected https://, http://, ssh:// or user@host:path')
  if (scheme === 'file://') return refused('file:// is not allowed')
  if (isWeb && afterScheme.slice(0, lengthOr(afterScheme.indexOf('/'), afterScheme)).includes('@'))
    return refused('URLs with a user name or password are not allowed; list a Config in render.kustomize.remoteBaseSecretRefs')
  if (mayBeFile && isWeb && unforced === address && isFilePath(hostAndPath)) return checked({ kind: 'file', url: text }, '')
  const end = separator(hostAndPath, isScp)
  if (end <= 0) return wrong('expected a host and the path of a Git repository')
  const path = splitPath(hostAndPath.slice(end + 1))
  if (path === null) return wrong('expected the path of a Git repository, such as https://host/org/repo//path?ref=v1')
  const isSsh = scheme === 'ssh://' || user !== ''
  const host = isGithub
    ? isSsh
      ? `${user === '' ? 'git@' : user}github.com:`
      : 'https://github.com/'
    : `${scheme}${user}${hostAndPath.slice(0, end + 1)}`
  const parameters = new URLSearchParams(query)
  const ref = parameters.get('ref') || parameters.get('version') || HEAD
  const submodules = /^(1|t|T|TRUE|true|True)$/.test(parameters.get('submodules') ?? '')
  return checked({ kind: 'git', url: host + path.repository, ref, submodules }, path.folder)
}

const refused = (message: string): RemoteAddress => ({ kind: 'refused', message })
const lengthOr = (index: number, text: string): number => (index < 0 ? text.length : index)

function split(text: string, mark: string): [before: string, after: string] {
  const at = text.indexOf(mark)
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + mark.length)]
}

function checked(base: RemoteBase, folder: string): RemoteAddress {
  const read = remoteBaseSchema.safeParse(base)
  if (!read.success) return refused(read.error.issues[0]?.message ?? 'is not a URL')
  const segments = folder.split('/').filter((segment) => segment !== '' && segment !== '.')
  const path: string[] = []
  for (const segment of segments) {
    if (segment !== '..') path.push(segment)
    else if (path.pop() === undefined) return refused('its path leads outside the repository')
  }
  return { kind: 'remote', base: read.data, path: path.join('/') }
}

/** kustomize asks for every web address as a file first. Nothing is asked here, so a file has to look like one. */
const isFilePath = (hostAndPath: string): boolean => /\.(ya?ml|json)$/i.test(hostAndPath) && !/\/\/|\.git\/|_git\//.test(hostAndPath)

/** Between host and path: a colon where there is no scheme and it comes before the first slash. */
function separator(hostAndPath: string, isScp: boolean): number {
  const slash = hostAndPath.indexOf('/')
  const colon = isScp ? hostAndPath.indexOf(':') : -1
  return colon > 0 && (slash < 0 || colon < slash) ? colon : slash
}

/** By `_git/`, `//` or `.git`, else the first two segments are the repository. */
function splitPath(path: string): { repository: string; folder: string } | null {
  const azure = path.indexOf('_git/')
  const slashes = path.indexOf('//')
  const suffix = path.indexOf('.git')
  let end: number
  if (azure >= 0)
    end = azure + '_git/'.length + lengthOr(path.slice(azure + '_git/'.length).indexOf('/'), path.slice(azure + '_git/'.length))
  else if (slashes >= 0) end = slashes
  else if (suffix >= 0) end = suffix + '.git'.length
  else {
    const segments = path.split('/')
    if (segments.length < 2) return null
    end = segments.slice(0, 2).join('/').length
  }
  const repository = path.slice(0, end)
  return repository === '' || repository.endsWith('/') ? null : { repository, folder: path.slice(end) }
}
