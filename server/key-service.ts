// The file of `--key-service`: which key service wraps the data keys of Configs. Files that it names are read at each
// sign-in, so that a rotated credential counts without a restart.
import { readFileSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { z } from 'zod'
import { parseYamlDocuments } from '../shared/adapters/yaml.ts'
import { explainIssues } from '../shared/model/explain.ts'
import type { Clock } from '../shared/runtime/clock.ts'
import { AppError } from '../shared/runtime/error.ts'
import type { KeyWrap } from './access/key-wrap.ts'
import { createTransitWrap } from './access/transit-wrap.ts'
import { createVault, type VaultAuth, VaultError } from './access/vault-api.ts'

const FILE_BYTES_MAX = 65_536
const SERVICE_ACCOUNT_TOKEN = '/var/run/secrets/kubernetes.io/serviceaccount/token'

const file = z.string().min(1).max(4_096)
const segment = z.string().regex(/^[A-Za-z0-9_.-]+(\/[A-Za-z0-9_.-]+)*$/, 'expected a path of letters, digits, . _ - and /')
const authSchema = z.union([
  z.strictObject({ tokenFile: file }),
  z.strictObject({ appRole: z.strictObject({ mount: segment.default('approle'), roleIdFile: file, secretIdFile: file }) }),
  z.strictObject({
    kubernetes: z.strictObject({
      mount: segment.default('kubernetes'),
      role: z.string().min(1),
      tokenFile: file.default(SERVICE_ACCOUNT_TOKEN),
    }),
  }),
])
export const keyServiceSchema = z.strictObject({
  transit: z.strictObject({
    url: z.url({ protocol: /^https?$/ }),
    namespace: z.string().min(1).optional(),
    caFile: file.optional(),
    mount: segment.default('transit'),
    key: z.string().regex(/^[A-Za-z0-9_.-]+$/, 'expected a name of letters, digits, . _ and -'),
    auth: authSchema,
  }),
  /** `open`: what it wrapped still opens, and new data keys are wrapped by the data folder again. */
  use: z.enum(['wrap', 'open']).default('wrap'),
})

export interface KeyService {
  wrap: KeyWrap
  /** Whether it wraps new data keys. */
  isMaster: boolean
}

/** Throws `bad_options` with file and path of each field that is wrong. */
export function readKeyService(
  path: string,
  clock: Clock,
  fetcher: (url: string, init: BunFetchRequestInit) => Promise<Response>,
): KeyService {
  const whole = resolve(path)
  const at = (named: string) => resolve(dirname(whole), named)
  const { documents, problems } = parseYamlDocuments(readBounded(whole), { file: whole })
  if (problems.length > 0) throw wrong(problems.map(({ path, message }) => `${path}: ${message}`).join('; '))
  const input = documents[0]?.value
  const read = keyServiceSchema.safeParse(input)
  if (!read.success)
    throw wrong(
      explainIssues(keyServiceSchema, input, read.error)
        .map(({ path, message }) => `${whole}: ${path}: ${message}`)
        .join('; '),
    )
  const { transit, use } = read.data
  const { url, namespace, caFile, auth } = transit
  const { protocol, hostname } = new URL(url)
  if (protocol === 'http:' && !['localhost', '127.0.0.1', '[::1]'].includes(hostname))
    throw wrong(`${whole}: transit.url: expected https, because the address is not this machine`)
  const ca = caFile === undefined ? undefined : readBounded(at(caFile))
  const vault = createVault({ url, namespace, ca, auth: authOf(auth, at) }, { fetcher, clock })
  return { wrap: createTransitWrap(vault, transit), isMaster: use === 'wrap' }
}

function authOf(auth: z.output<typeof authSchema>, at: (file: string) => string): VaultAuth {
  const content = (named: string) => (): string => {
    try {
      return readBounded(at(named)).trim()
    } catch (error) {
      throw error instanceof AppError ? new VaultError(`cannot read ${error.data.detail}`) : error
    }
  }
  if ('tokenFile' in auth) return { kind: 'token', token: content(auth.tokenFile) }
  if ('appRole' in auth) {
    const { mount, roleIdFile, secretIdFile } = auth.appRole
    return { kind: 'appRole', mount, roleId: content(roleIdFile), secretId: content(secretIdFile) }
  }
  const { mount, role, tokenFile } = auth.kubernetes
  return { kind: 'kubernetes', mount, role, jwt: content(tokenFile) }
}

function readBounded(path: string): string {
  try {
    if (statSync(path).size > FILE_BYTES_MAX) throw new Error(`more than ${FILE_BYTES_MAX} bytes`)
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw wrong(`${path}: ${error instanceof Error ? error.message : String(error)}`)
  }
}

const wrong = (detail: string): AppError =>
  new AppError('bad_options', {
    doing: 'read --key-service',
    detail,
    remedy: 'Correct the file; its fields are described in docs/how-to/config-and-secrets.md.',
  })
