// As much of an S3-compatible storage as a backup asks of one, in memory.
import { createHash } from 'node:crypto'

export interface S3Stub {
  endpoint: string
  /** By bucket and key. */
  objects: Map<string, Uint8Array>
  /** Answers with this error while it is set. */
  fail: { status: number; code: string } | null
  /** Changes what is stored. */
  damage: ((bytes: Uint8Array) => Uint8Array) | null
  /** Refuses to delete, as an object lock does. */
  keepsAll: boolean
  /** Of requests without a signature of version 4 by this key. */
  unsigned: number
  /** Those with more than one part. */
  multipart: number
  /** Objects of one page of a list. */
  pageSize: number
  stop(): Promise<void>
}

const xml = (body: string, status = 200) =>
  new Response(`<?xml version="1.0" encoding="UTF-8"?>${body}`, { status, headers: { 'content-type': 'application/xml' } })
const error = (status: number, code: string) => xml(`<Error><Code>${code}</Code><Message>${code}</Message></Error>`, status)
const etag = (bytes: Uint8Array) => `"${createHash('md5').update(bytes).digest('hex')}"`

export function startS3Stub(accessKeyId = 'AKIASTUB'): S3Stub {
  const uploads = new Map<string, Map<number, Uint8Array>>()
  const store = (key: string, bytes: Uint8Array) => stub.objects.set(key, stub.damage === null ? bytes : stub.damage(bytes))

  function list(bucket: string, query: URLSearchParams): Response {
    const [prefix, after] = [query.get('prefix') ?? '', query.get('start-after') ?? '']
    const keys = [...stub.objects.keys()].filter((key) => key.startsWith(`${bucket}/`)).map((key) => key.slice(bucket.length + 1))
    const found = keys.filter((key) => key.startsWith(prefix) && key > after).sort()
    const page = found.slice(0, stub.pageSize)
    const contents = page.map((key) => `<Contents><Key>${key}</Key><Size>${stub.objects.get(`${bucket}/${key}`)?.length}</Size></Contents>`)
    return xml(
      `<ListBucketResult><Name>${bucket}</Name><KeyCount>${page.length}</KeyCount><IsTruncated>${found.length > page.length}</IsTruncated>${contents.join('')}</ListBucketResult>`,
    )
  }

  async function answer(request: Request): Promise<Response> {
    const url = new URL(request.url)
    const signature = request.headers.get('authorization') ?? ''
    if (!signature.startsWith(`AWS4-HMAC-SHA256 Credential=${accessKeyId}/`)) {
      stub.unsigned++
      return error(403, 'AccessDenied')
    }
    if (stub.fail !== null) return error(stub.fail.status, stub.fail.code)
    const path = decodeURIComponent(url.pathname.slice(1))
    const upload = url.searchParams.get('uploadId')
    const bucket = path.replace(/\/$/, '')
    if (!bucket.includes('/')) return list(bucket, url.searchParams)
    if (request.method === 'POST' && url.searchParams.has('uploads')) {
      const id = `upload-${uploads.size}`
      uploads.set(id, new Map())
      return xml(`<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`)
    }
    if (upload !== null) {
      const parts = uploads.get(upload)
      if (parts === undefined) return error(404, 'NoSuchUpload')
      if (request.method === 'DELETE') uploads.delete(upload)
      if (request.method === 'DELETE') return new Response(null, { status: 204 })
      if (request.method === 'PUT') {
        const bytes = new Uint8Array(await request.arrayBuffer())
        parts.set(Number(url.searchParams.get('partNumber')), bytes)
        return new Response(null, { headers: { etag: etag(bytes) } })
      }
      if (parts.size > 1) stub.multipart++
      store(path, new Uint8Array(Buffer.concat([...parts].sort(([a], [b]) => a - b).map(([, bytes]) => bytes))))
      return xml('<CompleteMultipartUploadResult><ETag>"x"</ETag></CompleteMultipartUploadResult>')
    }
    if (request.method === 'PUT') {
      const bytes = new Uint8Array(await request.arrayBuffer())
      store(path, bytes)
      return new Response(null, { headers: { etag: etag(bytes) } })
    }
    const held = stub.objects.get(path)
    if (request.method === 'DELETE' && stub.keepsAll) return error(403, 'AccessDenied')
    if (request.method === 'DELETE') {
      stub.objects.delete(path)
      return new Response(null, { status: 204 })
    }
    if (held === undefined) return request.method === 'HEAD' ? new Response(null, { status: 404 }) : error(404, 'NoSuchKey')
    if (request.method === 'HEAD') return new Response(null, { headers: { 'content-length': String(held.length), etag: etag(held) } })
    return new Response(new Uint8Array(held), { headers: { etag: etag(held) } })
  }

  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: answer, maxRequestBodySize: 1 << 30 })
  const stub: S3Stub = {
    endpoint: `http://127.0.0.1:${server.port}`,
    objects: new Map(),
    fail: null,
    damage: null,
    keepsAll: false,
    unsigned: 0,
    multipart: 0,
    pageSize: 1_000,
    stop: () => server.stop(true),
  }
  return stub
}
