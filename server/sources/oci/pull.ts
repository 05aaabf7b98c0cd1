// Reads a Repository as a registry to ask, and a chart's archive by its reference alone.
import type { OciSpec } from '../../../shared/model/sources.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import type { AddressGuard } from '../address/guard.ts'
import type { WebCredential } from '../web-request.ts'
import { readManifest } from './layers.ts'
import type { OciSourceOptions, OciWanted } from './oci-source.ts'
import { isDigest, ociPlace, ociReference } from './reference.ts'
import { createRegistry, type Registry } from './registry.ts'

/** SO5: plain HTTP goes to addresses only that the operator named. */
export function openRegistry(
  { url, tag, semver, digest, insecure = false }: OciSpec,
  { fetcher, namedOnly }: AddressGuard,
  credential: WebCredential,
): Pick<OciSourceOptions, 'url' | 'wanted' | 'registry' | 'registryAt'> {
  const { host } = ociPlace(url)
  const registryAt = (at: string): Registry => {
    const place = ociPlace(at)
    // The credential is for this host, and only its own charts are asked for with it.
    if (place.host !== host) throw new AppError('source_refused', { detail: `${at} is not in the registry ${host}` })
    return createRegistry({ place, url: at, plain: insecure, fetcher: insecure ? namedOnly : fetcher, credential })
  }
  const wanted: OciWanted = digest !== undefined ? { digest } : semver !== undefined ? { semver } : { tag: tag ?? 'latest' }
  return { url, wanted, registry: registryAt(url), registryAt }
}

const NOBODY: WebCredential = { secretRef: null, read: async () => ({}) }

/** For `oci://` URLs in the index of a Helm repository: they name another host, for which the repository's credential
 *  is not. */
export const pullAnonymously =
  ({ fetcher }: AddressGuard) =>
  async (text: string): Promise<Uint8Array> => {
    const found = ociReference(text)
    if (found === null) throw new AppError('source_refused', { detail: `${text} is not a reference to a chart in a registry` })
    const { url, reference } = found
    const registry = createRegistry({ place: ociPlace(url), url, plain: false, fetcher, credential: NOBODY })
    const manifest = readManifest(await registry.manifest(isDigest(reference) ? reference : await registry.digestOf(reference)), text)
    const chart = manifest.kind === 'layers' ? manifest.layers.find(({ use }) => use.kind === 'chart') : undefined
    if (chart === undefined) throw new AppError('source_refused', { detail: `${text} is not a chart` })
    return registry.blob(chart, null, async () => {})
  }
