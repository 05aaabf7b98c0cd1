// A desired row as the document that is sent: cleaned, marked, in its right namespace. Pure; done once for a row that
// changed, never again.
import { APPLY_PLAINLY, type ApplyOptions, readApplyOptions } from '../../../shared/kube/apply-options.ts'
import { canonicalJson, sha256Hex } from '../../../shared/kube/canonical.ts'
import { cleanObject, markObject, markOrigin, type Origin, withoutNulls } from '../../../shared/kube/clean.ts'
import { groupOf, isK8sObject, type K8sObject, type ObjectRef, refKey, refOf, versionOf } from '../../../shared/kube/object.ts'
import { applyStage } from '../../../shared/kube/order.ts'
import { isHookDocument, type Order, orderOf } from '../../../shared/kube/waves.ts'
import { objectRowId, type ServiceRow } from '../../../shared/model/desired.ts'
import type { IgnoreRule } from '../../../shared/model/resources.ts'
import { isSealed } from '../../../shared/model/sealed-object.ts'
import type { ServiceId } from '../../../shared/runtime/ids.ts'
import { hasSopsMember, isSopsRow } from '../../../shared/sops/parcel.ts'
import { objectPart, objectStatus, objectText } from '../../messages/object-messages.ts'
import type { InventoryEntry } from '../../state/agent-state.ts'
import { heldLeaveFacts, type LeaveFacts, leaveFacts } from './fields/ignore.ts'
import { type HookSpec, specOf } from './hook-spec.ts'
import { type Permitted, refusedObject, type SitePolicy } from './permits.ts'
import type { Problem } from './situation.ts'
import type { KindLookup } from './watch/served-kinds.ts'

export interface Wanted {
  key: string
  ref: ObjectRef
  apiVersion: string
  stage: number
  /** Canonical JSON, as sent. */
  sent: string
  /**
   * The service's own namespace (`sync.createNamespace`): created if it does not exist, otherwise left alone, never
   * pruned.
   */
  onlyIfAbsent: boolean
  /** AO1. Absent means applied plainly, as almost every object is. */
  options?: ApplyOptions
  /** Fields that may be left to others; set only if there are any. */
  leave?: LeaveFacts
  /** RC25: `sent` lacks the nulls of its row. */
  nullsRefused?: true
  /** OR3; only set where it is not 0. */
  wave?: number
  /** SP4: `version` of the keys that opened its SOPS documents: it is read again when the site has others. */
  openedBy?: string
}

/** A row that could not become a wanted object yet. */
export interface Unread {
  ref: ObjectRef
  apiVersion: string
  doc: string
  problem: Problem
  wave: number
  /** It is no ordinary object: its phase waits for it, and no wave. */
  hook?: HookSpec
}

export type WantedRead =
  | { kind: 'wanted'; wanted: Wanted }
  | { kind: 'hook'; spec: HookSpec }
  /** An annotation keeps it from being applied. */
  | { kind: 'skipped'; ref: ObjectRef }
  /** No API serves it yet. `ref` is that of the row, since it is unknown whether the kind has a namespace. */
  | { kind: 'unserved'; ref: ObjectRef; apiVersion: string; message: string; wave: number; hook?: HookSpec }
  /** `hook`: its hook, as far as known: its phase waits for it. */
  | { kind: 'unreadable'; ref: ObjectRef; apiVersion: string; message: string; reason?: string; hook?: HookSpec }

/** Opens SOPS documents with the keys of this site. */
export interface Decryption {
  /** Names the keys of the site. */
  version(): string
  /** Must resolve before `open` of the same object. Null means that there is nothing to wait for. */
  prepare(service: ServiceId, object: K8sObject): Promise<void> | null
  /** The object as it is applied; without SOPS documents, as it is. */
  open(service: ServiceId, object: K8sObject): Decrypted
}
export type Decrypted = { kind: 'plain'; object: K8sObject } | { kind: 'closed'; reason: string; message: string }

/** A site that opens none. */
export const NO_DECRYPTION: Decryption = {
  version: () => '',
  prepare: () => null,
  open: (_, object) => (hasSopsMember(object) ? { kind: 'closed', ...objectStatus('SopsUnreadable.noKeys') } : { kind: 'plain', object }),
}

export interface WantedContext {
  clusterId: string
  service: ServiceId
  /** The namespace of namespaced objects that name none. */
  namespace: string | undefined
  /** NS3: objects of other namespaces than the service's are errors. */
  enforceNamespace?: boolean | undefined
  /** NS1: of the namespace that `createNamespace` makes. */
  namespaceMarks?: { labels?: Record<string, string> | undefined; annotations?: Record<string, string> | undefined }
  /** Rules of the service. */
  ignore?: readonly IgnoreRule[] | undefined
  /** PJ12, LX1. Absent means that everything is allowed. */
  permitted?: Permitted
  find(group: string, version: string, kind: string): KindLookup
  /** SL4: opens a sealed row. Null means that it does not open. */
  open?(rowId: string, doc: string): string | null
  /** Absent: NO_DECRYPTION. */
  sops?: Decryption
}

/** SP4: resolves when `readWanted` can read the row. Null means at once. */
export function preparing(
  rowId: string,
  doc: string,
  { service, open, sops }: Pick<WantedContext, 'service' | 'open' | 'sops'>,
): Promise<void> | null {
  if (sops === undefined || !isSopsRow(doc)) return null
  const opened = isSealed(doc) ? (open?.(rowId, doc) ?? null) : doc
  const object = opened === null ? null : parse(opened)
  return object === null ? null : sops.prepare(service, object)
}

/** NS1, NS3, PJ12: the rules of the row and the site for the objects of the row. */
export const rowContext = (
  service: ServiceId,
  row: ServiceRow | null,
  policy: SitePolicy | null,
): Omit<WantedContext, 'clusterId' | 'find' | 'open' | 'sops'> => ({
  ...{ service, namespace: row?.namespace, ignore: row?.ignore, permitted: { id: service, row, policy } },
  namespaceMarks: { labels: row?.sync.namespaceLabels, annotations: row?.sync.namespaceAnnotations },
  enforceNamespace: row?.sync.enforceNamespace,
})

/** RC4: `ref` is the row's, used where the document cannot say better. */
export function readWanted(ref: ObjectRef, doc: string, context: WantedContext): WantedRead {
  const parsed = parse(doc)
  if (parsed === null) return { kind: 'unreadable', ref, apiVersion: 'v1', message: objectText('Unreadable.noObject') }
  const order = orderOf(parsed.metadata.annotations)
  if (isSealed(doc)) {
    const opened = context.open?.(objectRowId(context.service, ref), doc) ?? null
    if (opened !== null && !isSealed(opened)) return readWanted(ref, opened, context)
    return { kind: 'unreadable', ref, apiVersion: parsed.apiVersion, ...objectStatus('SealedUnreadable'), ...hookOf(parsed, ref, order) }
  }
  const { sops = NO_DECRYPTION } = context
  const decrypted = sops.open(context.service, parsed)
  if (decrypted.kind === 'closed') {
    const { reason, message } = decrypted
    return { kind: 'unreadable', ref, apiVersion: parsed.apiVersion, message, reason, ...hookOf(parsed, ref, order) }
  }
  const read = readParsed(ref, decrypted.object, order, context)
  if (read.kind === 'wanted' && hasSopsMember(parsed)) return { ...read, wanted: { ...read.wanted, openedBy: sops.version() } }
  const isRead = read.kind !== 'unserved' && read.kind !== 'unreadable'
  return isRead || order.kind !== 'hook' ? read : { ...read, hook: specOf(cleanObject(decrypted.object), ref, order) }
}

const hookOf = (parsed: K8sObject, ref: ObjectRef, order: Order): { hook?: HookSpec } =>
  order.kind === 'hook' ? { hook: specOf(cleanObject(parsed), ref, order) } : {}

function readParsed(ref: ObjectRef, parsed: K8sObject, order: Order, context: WantedContext): WantedRead {
  const { apiVersion, kind } = parsed
  if (order.kind === 'malformed') return { kind: 'unreadable', ref, apiVersion, message: order.message }
  if (parsed.metadata.name === undefined && (order.kind === 'ordinary' || parsed.metadata.generateName === undefined)) {
    return { kind: 'unreadable', ref, apiVersion, message: objectText('Unreadable.noName') }
  }
  const lookup = context.find(groupOf(apiVersion), versionOf(apiVersion), kind)
  if (lookup.kind !== 'served') {
    const wave = order.kind === 'skipped' ? 0 : order.wave
    return { kind: 'unserved', ref, apiVersion, message: unservedText(apiVersion, kind, lookup), wave }
  }
  const { verbs, namespaced } = lookup.resource
  if (!verbs.includes('patch') || !verbs.includes('watch')) {
    return { kind: 'unreadable', ref, apiVersion, message: objectText('Unreadable.verbs', { apiVersion, kind }) }
  }
  const read = readApplyOptions(parsed.metadata.annotations)
  if (read.kind === 'wrong') return { kind: 'unreadable', ref, apiVersion, message: read.message }
  const { namespace: named, ...metadata } = parsed.metadata
  const namespace = named ?? context.namespace
  const elsewhere = namespaced ? whyElsewhere(named, context) : null
  if (elsewhere !== null) return { kind: 'unreadable', ref, apiVersion, message: elsewhere }
  if (namespaced && namespace === undefined) {
    return { kind: 'unreadable', ref, apiVersion, message: objectText('Unreadable.noNamespace') }
  }
  const placed = { ...parsed, metadata: namespaced && namespace !== undefined ? { ...metadata, namespace } : metadata }
  if (order.kind === 'skipped') return { kind: 'skipped', ref: { ...refOf(placed), name: placed.metadata.name ?? ref.name } }
  const refused =
    context.permitted === undefined ? null : refusedObject(context.permitted, { ...refOf(placed), name: placed.metadata.name ?? ref.name })
  if (refused !== null) return { kind: 'unreadable', ref, apiVersion, ...refused }
  if (order.kind === 'hook') return { kind: 'hook', spec: specOf(cleanObject(placed), ref, order) }
  const plain = toWanted(placed, context, false)
  const wanted = read.options === APPLY_PLAINLY ? plain : { ...plain, options: read.options }
  return { kind: 'wanted', wanted: order.wave === 0 ? wanted : { ...wanted, wave: order.wave } }
}

/** RC4: its kind has a namespace now and had none, or the reverse. SP4: the site has other keys than those that opened
 *  it. */
export function isOutdated({ ref, apiVersion, openedBy }: Wanted, { find, sops }: Pick<WantedContext, 'find' | 'sops'>): boolean {
  if (openedBy !== undefined && openedBy !== sops?.version()) return true
  const lookup = find(groupOf(apiVersion), versionOf(apiVersion), ref.kind)
  return lookup.kind === 'served' && lookup.resource.namespaced !== (ref.namespace !== '')
}

/** NS3. Null means that its namespace is allowed. Objects without a namespace always pass. */
function whyElsewhere(named: string | undefined, { namespace, enforceNamespace }: WantedContext): string | null {
  if (enforceNamespace !== true) return null
  if (namespace === undefined) return objectText('Unreadable.noEnforcedNamespace')
  if (named === undefined || named === namespace) return null
  return objectText('Unreadable.otherNamespace', { named, namespace })
}

/** Reads the options of an applied document, which is used before a revision is read. */
export function optionsOf(sent: string): ApplyOptions {
  // Parsed only if it can say anything: this runs over all that a cluster has.
  if (!sent.includes('/sync-options"') && !sent.includes('"kustomize.toolkit.fluxcd.io/')) return APPLY_PLAINLY
  const read = readApplyOptions(parse(sent)?.metadata.annotations)
  return read.kind === 'options' ? read.options : APPLY_PLAINLY
}

/** PJ6: whether the service may make its namespace. */
export const mayMakeNamespace = (name: string, { permitted }: WantedContext): boolean =>
  permitted === undefined || refusedObject(permitted, { group: '', kind: 'Namespace', namespace: '', name }, true) === null

/** The namespace of a service; it carries the keep mark, so that no removal deletes it. */
export function wantedNamespace(name: string, context: WantedContext): Wanted {
  const { labels, annotations } = context.namespaceMarks ?? {}
  const metadata = { name, ...(labels === undefined ? {} : { labels }), annotations: { ...annotations, 'skerry.dev/prune': 'disabled' } }
  const object: K8sObject = { apiVersion: 'v1', kind: 'Namespace', metadata }
  return toWanted(object, context, true)
}

function toWanted(object: K8sObject, { clusterId, service, ignore = [] }: WantedContext, onlyIfAbsent: boolean): Wanted {
  const ref = refOf(object)
  const sent = canonicalJson(markObject(cleanObject(object), clusterId, service))
  const leave = leaveFacts(object, ref, ignore)
  const wanted = { key: refKey(ref), ref, apiVersion: object.apiVersion, stage: applyStage(ref), sent, onlyIfAbsent }
  return leave === null ? wanted : { ...wanted, leave }
}

function parse(doc: string): K8sObject | null {
  try {
    const parsed: unknown = JSON.parse(doc)
    return isK8sObject(parsed) ? parsed : null
  } catch {
    return null
  }
}

export function unservedText(apiVersion: string, kind: string, lookup: Exclude<KindLookup, { kind: 'served' }>): string {
  if (lookup.kind === 'stale') return objectText('UnknownKind.silent', { apiVersion })
  const [preferred] = lookup.versions
  return preferred === undefined
    ? objectText('UnknownKind', { apiVersion, kind })
    : objectText('UnknownKind.otherVersion', { apiVersion, kind, versions: lookup.versions.join(', ') })
}

/** The object as sent. */
export const sentObject = ({ doc, ...origin }: { doc: string } & Origin): K8sObject => markOrigin(JSON.parse(doc) as K8sObject, origin)

// The applied document, as if a revision still named it: it is in force while the newer one cannot be read, or waits.

/** Null if it was never applied, or is a hook, which is not put back. */
export function heldWanted({ ref, apiVersion, appliedDoc }: InventoryEntry): Wanted | null {
  if (appliedDoc === null || isHookDocument(appliedDoc)) return null
  const leave = heldLeaveFacts(appliedDoc, ref)
  const wanted = { key: refKey(ref), ref, apiVersion, stage: applyStage(ref), sent: appliedDoc, onlyIfAbsent: false }
  const options = optionsOf(appliedDoc)
  const held = options === APPLY_PLAINLY ? wanted : { ...wanted, options }
  return leave === null ? held : { ...held, leave }
}

// A null means something in a custom resource (`nodeSelector: null` of a HelmRelease removes the chart's default), and
// the schema of another one refuses it. Only the API server knows which: the document is sent with its nulls, and
// without them after a refusal. The refusal is remembered until the document changes.

/** The same document without nulls. Null means that it has none. */
export function dropNulls(doc: string): string | null {
  if (!doc.includes('null')) return null
  const plain = canonicalJson(withoutNulls(JSON.parse(doc) as K8sObject))
  return plain === doc ? null : plain
}

const FACT = 'nulls/'
export const nullsDocumentId = (doc: string): string => sha256Hex(doc).slice(0, 16)

export function readRefusedNulls(facts: ReadonlyMap<string, unknown>): Map<string, string> {
  return new Map(
    [...facts].flatMap(([key, doc]) => (key.startsWith(FACT) && typeof doc === 'string' ? [[key.slice(FACT.length), doc]] : [])),
  )
}

/** The sent form of a wanted object: without the nulls that the API server is known to refuse. */
export function withoutRefusedNulls<T extends { sent: string; nullsRefused?: true }>(wanted: T, refused: string | undefined): T {
  if (refused === undefined || refused !== nullsDocumentId(wanted.sent)) return wanted
  return { ...wanted, sent: dropNulls(wanted.sent) ?? wanted.sent, nullsRefused: true }
}

/** For the status of its object. */
export const NULLS_LEFT_OUT = objectPart('nulls_left_out')

export const refusedNullsFact = (key: string, document: string | null): ReadonlyMap<string, unknown> => new Map([[FACT + key, document]])
