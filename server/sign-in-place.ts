// Through whom people and pipelines sign in, from the file of `--oidc-config` and the files that it names. All of them
// are read once, at the start.
import { readFileSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { parseYamlDocuments } from '../shared/adapters/yaml.ts'
import { AppError } from '../shared/runtime/error.ts'
import { type OidcSettings, readOidcSettings } from './access/oidc/settings.ts'
import type { SignInPlace } from './access/oidc/sign-in.ts'

/** Certificates of a large organisation. */
const FILE_BYTES_MAX = 1_024 * 1_024

const wrong = (detail: string): AppError =>
  new AppError('bad_options', {
    doing: 'read --oidc-config',
    detail,
    remedy: 'Correct the file; its fields are described in docs/how-to/sign-in.md.',
  })

/** Throws `bad_options` with file and path of each field that is wrong. Relative paths are those of the folder of the
 *  file. */
export function readSignInPlace(file: string): SignInPlace {
  const path = resolve(file)
  const { documents, problems } = parseYamlDocuments(readBounded(path, path), { file: path })
  if (problems.length > 0) throw wrong(problems.map(({ path: at, message }) => `${at}: ${message}`).join('; '))
  if (documents.length > 1) throw wrong(`${path}: expected one document`)
  const read = readOidcSettings(documents[0]?.value, path)
  if ('problems' in read) throw wrong(read.problems.map(({ path: at, message }) => `${at}: ${message}`).join('; '))
  const { settings } = read
  const files = new Map<string, string>()
  for (const [field, named] of filesOf(settings)) files.set(named, contentOf(resolve(dirname(path), named), `${path}: ${field}`))
  return { settings, files }
}

function filesOf({ providers, workloads }: OidcSettings): Array<[field: string, file: string]> {
  const found: Array<[string, string | undefined]> = [
    ...providers.flatMap(
      ({ clientSecretFile, caFile }, i): Array<[string, string | undefined]> => [
        [`providers[${i}].clientSecretFile`, clientSecretFile],
        [`providers[${i}].caFile`, caFile],
      ],
    ),
    ...workloads.map(({ caFile }, i): [string, string | undefined] => [`workloads[${i}].caFile`, caFile]),
  ]
  return found.flatMap(([field, file]) => (file === undefined ? [] : [[field, file]]))
}

function contentOf(path: string, where: string): string {
  const text = readBounded(path, where)
  if (text.trim() === '') throw wrong(`${where}: ${path} is empty`)
  return text
}

function readBounded(path: string, where: string): string {
  try {
    if (statSync(path).size > FILE_BYTES_MAX) throw new Error(`${path} has more than ${FILE_BYTES_MAX} bytes`)
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw wrong(`${where}: ${error instanceof Error ? error.message : String(error)}`)
  }
}
