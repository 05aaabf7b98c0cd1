// Recognisable secrets, each for one place where a secret enters, and the search for them in every form that a filter
// or a program may have given them.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

export const CANARIES = {
  manifest: 'canary/of/manifest-7f3a91c2',
  config: 'canary/of/config-51be08d4',
  /** A values file that is committed in clear. */
  values: 'canary/of/values-8c02d9e7',
  /** A values file that SOPS encrypted to the operator of the server. */
  sopsValues: 'canary/of/sops-values-e41f6b90',
  /** A Secret that SOPS encrypted to the site. */
  sopsManifest: 'canary/of/sops-manifest-3d97a5c8',
  /** A value of a Config that comes from a file. */
  outside: 'canary/of/outside-b60e82f1',
  /** The password of the Git server. */
  credential: 'canary/of/credential-d5a4097b',
}

/** Characters of base64 that no neighbour changes, whatever stands before and after the text. */
const BASE64_CHARS = 24
const base64 = (text: string) => Buffer.from(text).toString('base64')

/** As a secret may have been written down. `drawn`: by a generator, so that its hash tells nobody anything. */
function formsOf(text: string, drawn: boolean): string[] {
  return [
    text,
    text.toUpperCase(),
    text.slice(-8),
    [...text].reverse().join(''),
    [...text].join('.'),
    encodeURIComponent(text),
    Buffer.from(text).toString('hex'),
    ...(drawn ? [] : [createHash('sha256').update(text).digest('hex')]),
    base64(base64(text)).slice(0, BASE64_CHARS),
    // Base64 of a text that is not at the start of what was encoded begins at any of three places.
    ...[0, 1, 2].map((skip) => base64(text.slice(skip)).slice(0, BASE64_CHARS)),
  ]
}

const ZSTD_MAGIC = Buffer.from([0x28, 0xb5, 0x2f, 0xfd])

/** Finds the texts in bytes, in clear or compressed with zstd. */
export function createSearch(texts: readonly string[], drawn: readonly string[] = []): (name: string, bytes: Buffer) => string[] {
  const formsOfAll = [
    ...texts.map((text) => [text, formsOf(text, false)] as const),
    ...drawn.map((text) => [text, formsOf(text, true)] as const),
  ]
  const forms = formsOfAll.flatMap(([text, all]) => all.map((form) => ({ form: Buffer.from(form), said: `${text} as ${form}` })))
  const search = (name: string, bytes: Buffer): string[] => {
    const found = forms.filter(({ form }) => bytes.includes(form)).map(({ said }) => `${name}: ${said}`)
    for (let at = bytes.indexOf(ZSTD_MAGIC); at >= 0; at = bytes.indexOf(ZSTD_MAGIC, at + 1)) {
      try {
        found.push(...search(`${name}@${at}`, Buffer.from(Bun.zstdDecompressSync(bytes.subarray(at)))))
      } catch {
        // four bytes of something else
      }
    }
    return found
  }
  return search
}

/** Files below a folder, with their content. Processes at work may remove some meanwhile. */
export function* filesIn(folder: string): Generator<{ path: string; bytes: Buffer }> {
  for (const name of orNothing(() => readdirSync(folder, { recursive: true, encoding: 'utf8' })) ?? []) {
    const path = join(folder, name)
    const bytes = orNothing(() => (statSync(path).isFile() ? readFileSync(path) : null))
    if (bytes !== null) yield { path, bytes }
  }
}

function orNothing<T>(read: () => T | null): T | null {
  try {
    return read()
  } catch {
    return null
  }
}
