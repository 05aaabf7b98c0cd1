// An OCI image layout of one image: an index with a manifest for each platform that has a binary.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Architecture, FinalStage } from './dockerfile.ts'
import { type Layer, sha256 } from './layer.ts'

const INDEX = 'application/vnd.oci.image.index.v1+json'
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json'
const CONFIG = 'application/vnd.oci.image.config.v1+json'
const LAYER = 'application/vnd.oci.image.layer.v1.tar+gzip'

export interface PlatformImage {
  architecture: Architecture
  layers: readonly Layer[]
}

export interface ImageFacts {
  stage: FinalStage
  labels: Readonly<Record<string, string>>
  created: string
  /** Name of the image in the layout, such as `0.1.0`. */
  ref: string
}

interface Descriptor {
  mediaType: string
  digest: string
  size: number
}

const json = (value: object) => new TextEncoder().encode(JSON.stringify(value))

const blobsIn =
  (folder: string) =>
  (mediaType: string, bytes: Uint8Array): Descriptor => {
    const hash = sha256(bytes)
    writeFileSync(join(folder, 'blobs/sha256', hash), bytes)
    return { mediaType, digest: `sha256:${hash}`, size: bytes.byteLength }
  }

export interface WrittenImage {
  /** Digest of the index of all platforms. */
  digest: string
  platforms: Array<{ architecture: string; digest: string; bytes: number }>
}

export function writeLayout(folder: string, images: readonly PlatformImage[], { stage, labels, created, ref }: ImageFacts): WrittenImage {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(join(folder, 'blobs/sha256'), { recursive: true })
  const put = blobsIn(folder)
  const manifests = images.map(({ architecture, layers }) => {
    const config = {
      ...{ created, architecture, os: 'linux' },
      config: {
        ...{ User: stage.user, WorkingDir: stage.workdir, Entrypoint: stage.entrypoint, Cmd: stage.cmd, Labels: labels },
        Env: stage.env.length > 0 ? stage.env : ['PATH=/usr/bin:/bin'],
        ...(stage.ports.length > 0 ? { ExposedPorts: Object.fromEntries(stage.ports.map((port) => [`${port}/tcp`, {}])) } : {}),
        ...(stage.volumes.length > 0 ? { Volumes: Object.fromEntries(stage.volumes.map((volume) => [volume, {}])) } : {}),
      },
      rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
      history: layers.map(() => ({ created, created_by: 'scripts/image' })),
    }
    const blobs = layers.map(({ gzip }) => put(LAYER, gzip))
    const manifest = { schemaVersion: 2, mediaType: MANIFEST, config: put(CONFIG, json(config)), layers: blobs, annotations: labels }
    const descriptor = put(MANIFEST, json(manifest))
    return { descriptor: { ...descriptor, platform: { architecture, os: 'linux' } }, bytes: blobs.reduce((sum, { size }) => sum + size, 0) }
  })
  const index = put(
    INDEX,
    json({ schemaVersion: 2, mediaType: INDEX, manifests: manifests.map(({ descriptor }) => descriptor), annotations: labels }),
  )
  const named = { ...index, annotations: { 'org.opencontainers.image.ref.name': ref } }
  writeFileSync(join(folder, 'index.json'), JSON.stringify({ schemaVersion: 2, mediaType: INDEX, manifests: [named] }))
  writeFileSync(join(folder, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }))
  return {
    digest: index.digest,
    platforms: manifests.map(({ descriptor, bytes }) => ({
      architecture: descriptor.platform.architecture,
      digest: descriptor.digest,
      bytes,
    })),
  }
}

const SIMPLE_SIGNING = 'application/vnd.dev.cosign.simplesigning.v1+json'

/** Adds a signature where cosign looks for it: an image beside the signed one, tagged with its digest. */
export function addSignature(folder: string, digest: string, payload: Uint8Array, sign: (bytes: Uint8Array) => string): void {
  const put = blobsIn(folder)
  const layer = { ...put(SIMPLE_SIGNING, payload), annotations: { 'dev.cosignproject.cosign/signature': sign(payload) } }
  const config = put(CONFIG, json({ architecture: '', os: '', config: {}, rootfs: { type: 'layers', diff_ids: [layer.digest] } }))
  const manifest = put(MANIFEST, json({ schemaVersion: 2, mediaType: MANIFEST, config, layers: [layer] }))
  const index = JSON.parse(readFileSync(join(folder, 'index.json'), 'utf8')) as { manifests: object[] }
  const tag = `${digest.replace(':', '-')}.sig`
  index.manifests.push({ ...manifest, annotations: { 'org.opencontainers.image.ref.name': tag } })
  writeFileSync(join(folder, 'index.json'), JSON.stringify(index))
}
