// Turns the bytes of a watch into events: splits lines, parses each one, and gives objects that were requested with
// their metadata alone their own kind. Pure; kube-watch.ts does requests and retries.
import { z } from 'zod'
import { isK8sObject, type K8sObject } from '../../shared/kube/object.ts'
import type { Said } from '../../shared/runtime/messages.ts'
import { failureSays } from '../messages/object-messages.ts'
import { failureOf } from './api-failure.ts'
import type { ApiFailure, ApiResource } from './cluster.ts'
import { safeText } from './redact/safe-text.ts'

/** One line is one object, and etcd takes 1.5 MB by default. A longer line does not come from a watch. */
export const LINE_BYTES_MAX = 32 * 1024 * 1024

const NEWLINE = 10

/** Splits a byte stream into lines. Chunks may end anywhere, also inside a UTF-8 sequence. */
export class LineSplitter {
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  #pending: Uint8Array[] = []
  #pendingBytes = 0

  /** The lines that `chunk` completes, without newline and without empty lines. */
  push(chunk: Uint8Array): string[] {
    const lines: string[] = []
    let start = 0
    for (let end = chunk.indexOf(NEWLINE, start); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      const line = this.#take(chunk.subarray(start, end))
      if (line !== '') lines.push(line)
      start = end + 1
    }
    if (start < chunk.length) {
      // A copy, because the stream may reuse the buffer of a chunk.
      this.#pending.push(chunk.slice(start))
      this.#pendingBytes += chunk.length - start
      if (this.#pendingBytes > LINE_BYTES_MAX) throw new Error(`a line of a watch is longer than ${LINE_BYTES_MAX} bytes`)
    }
    return lines
  }

  #take(tail: Uint8Array): string {
    if (this.#pending.length === 0) return this.#decoder.decode(tail)
    const line = this.#decoder.decode(Buffer.concat([...this.#pending, tail]))
    this.#pending = []
    this.#pendingBytes = 0
    return line
  }
}

export type WatchLine =
  | { kind: 'object'; type: 'ADDED' | 'MODIFIED' | 'DELETED'; object: K8sObject; resourceVersion: string }
  | { kind: 'bookmark'; resourceVersion: string; initialEventsEnd: boolean }
  /** Code 410 inside a 200: the server no longer remembers the position. */
  | { kind: 'expired' }
  | { kind: 'error'; failure: ApiFailure }

const bookmark = z.looseObject({
  metadata: z.looseObject({ resourceVersion: z.string(), annotations: z.record(z.string(), z.string()).nullish() }),
})

/** KA20: a line that cannot be parsed is an error of the stream. To skip it would lose an event for ever. KA54: the
 *  error does not quote the line, which may hold a Secret. */
export function parseWatchLine(line: string, resource: ApiResource): WatchLine {
  const event = parseJson(line)
  if (event === null || typeof event !== 'object' || !('type' in event))
    return unreadable(failureSays('Unreadable.line', { chars: line.length }))
  const { type, object } = event as { type: unknown; object?: unknown }
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED': {
      const checked = asObject(ofResource(object, resource))
      if (checked === null) return unreadable(failureSays('Unreadable.event', { type, chars: line.length }))
      return { kind: 'object', type, object: checked, resourceVersion: checked.metadata.resourceVersion ?? '' }
    }
    case 'BOOKMARK': {
      const checked = bookmark.safeParse(object)
      if (!checked.success) return unreadable(failureSays('Unreadable.bookmark'))
      const { resourceVersion, annotations } = checked.data.metadata
      return { kind: 'bookmark', resourceVersion, initialEventsEnd: annotations?.['k8s.io/initial-events-end'] === 'true' }
    }
    case 'ERROR': {
      const code = codeOf(object)
      if (code === 410) return { kind: 'expired' }
      return { kind: 'error', failure: failureOf({ status: code, body: object, text: line, retryAfter: null, plural: resource.plural }) }
    }
    default:
      return unreadable(failureSays('Unreadable.eventType', { type: safeText(String(type)) }))
  }
}

/** The value itself, if it is a Kubernetes object. It is checked and not rebuilt, so that nothing in it changes. */
export function asObject(value: unknown): K8sObject | null {
  return isK8sObject(value) ? value : null
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const codeOf = (status: unknown): number =>
  status !== null && typeof status === 'object' && 'code' in status && typeof status.code === 'number' ? status.code : 500

const unreadable = (said: Said<'Unreadable'>): WatchLine => ({ kind: 'error', failure: { kind: 'server_error', status: 200, ...said } })

const FORM = 'g=meta.k8s.io;v=v1'
/** Accept header for the metadata of one object and for a watch of metadata. */
export const METADATA_ACCEPT = `application/json;as=PartialObjectMetadata;${FORM}`
/** Accept header for the metadata of a list by pages. */
export const METADATA_LIST_ACCEPT = `application/json;as=PartialObjectMetadataList;${FORM}`

const PARTIAL = 'PartialObjectMetadata'

/**
 * `object` with the kind and version of the requested resource, in place of PartialObjectMetadata. Any other value is
 * returned unchanged.
 */
export function ofResource(object: unknown, { group, version, kind }: ApiResource): unknown {
  if (object === null || typeof object !== 'object' || !('kind' in object) || object.kind !== PARTIAL) return object
  return { ...object, apiVersion: group === '' ? version : `${group}/${version}`, kind }
}
