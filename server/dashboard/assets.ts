// The bundled files of the dashboard. This module is loaded by the first request for them: a server without dashboard
// users does not hold them.
import { builtAssets } from './build-assets.ts' with { type: 'macro' }

export interface Asset {
  /** With a hash of its content in it. */
  name: string
  gzip: Uint8Array<ArrayBuffer>
  zstd: Uint8Array<ArrayBuffer>
}

interface Built {
  name: string
  gzip: string
  zstd: string
}

const bytes = (base64: string): Uint8Array<ArrayBuffer> => new Uint8Array(Buffer.from(base64, 'base64'))
const files: Asset[] = (JSON.parse(builtAssets()) as Built[]).map(({ name, gzip, zstd }) => ({
  name,
  gzip: bytes(gzip),
  zstd: bytes(zstd),
}))

export const ASSETS: ReadonlyMap<string, Asset> = new Map(files.map((file) => [file.name, file]))

const named = (pattern: RegExp): string => files.find(({ name }) => pattern.test(name))?.name ?? ''
export const ENTRY = {
  script: named(/^main-.*\.js$/),
  begin: named(/^begin-.*\.js$/),
  style: named(/^main-.*\.css$/),
  icon: named(/^icon-.*\.svg$/),
}
