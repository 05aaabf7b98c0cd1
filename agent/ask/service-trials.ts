// Server-side dry runs: the changes that an apply of the present revision (desired against live) or of a proposed one
// would make. Writes nothing.
import { cleanObject } from '../../shared/kube/clean.ts'
import { groupOf, isK8sObject, type K8sObject, type ObjectRef, refKey, refOf, refText } from '../../shared/kube/object.ts'
import { objectRowPrefix } from '../../shared/model/desired.ts'
import { isSealed } from '../../shared/model/sealed-object.ts'
import type { Question } from '../../shared/protocol/ask.ts'
import { serviceKey, serviceText } from '../../shared/runtime/ids.ts'
import type { ApplyResult } from '../cluster/cluster.ts'
import { answerNote, questionRefusal } from '../messages/question-messages.ts'
import { userOf } from '../reconcile/apply/acting.ts'
import { actingAs } from '../reconcile/snapshot/account.ts'
import { refusedObject } from '../reconcile/snapshot/permits.ts'
import { diffLine, missingLine, noteLine, refusedLine, triedLine, unreadableLine } from './answer-lines.ts'
import type { AnswerSink } from './answer-writer.ts'
import { type AnswerContext, refusedNamespace } from './ask-context.ts'
import { AskRefused } from './ask-desk.ts'
import { hidingInService, hidingOf } from './hiding.ts'
import { differences, FIELDS_MAX, type FieldDifference } from './object-differences.ts'

type DiffQuestion = Extract<Question, { kind: 'diff' }>
type DryRunQuestion = Extract<Question, { kind: 'dryRun' }>
type Service = DiffQuestion['service']

/** The ServiceAccount that a service acts as. Absent means the agent itself. */
export function actingFor({ replica }: AnswerContext, service: Service): { as?: string } {
  const read = replica()?.read(service)
  const row = read?.kind === 'complete' ? read.revision.row : null
  const acting = row === null ? null : actingAs(row.sync, row.namespace)
  return acting?.kind === 'account' ? { as: userOf(acting.account) } : {}
}

export async function answerDiff(
  context: AnswerContext,
  { service, ref }: DiffQuestion,
  sink: AnswerSink,
  signal: AbortSignal,
): Promise<void> {
  const entries = context.state.inventory(service).filter((entry) => ref === undefined || refKey(entry.ref) === refKey(ref))
  if (entries.length === 0)
    throw new AskRefused(
      ref === undefined
        ? questionRefusal('object_not_found.no_objects', { service: serviceKey(service) })
        : questionRefusal('object_not_found.not_in_service', { kind: ref.kind, name: ref.name }),
    )
  const acting = actingFor(context, service)
  const hidingFor = hidingInService(context, service)
  await each(entries, signal, async ({ ref: own, appliedDoc }) => {
    const hiding = hidingFor(own)
    const denied = refusedNamespace(context.policy(), own)
    if (denied !== null) return sink.write(unreadableLine(own, { own: denied }, hiding))
    const desired = appliedDoc === null ? null : (JSON.parse(appliedDoc) as K8sObject)
    const live = await context.reads.objectOrNull(own)
    if (live === null) return sink.write(missingLine(own))
    if (desired === null) return sink.write(unreadableLine(own, { own: answerNote('not_applied') }, hiding))
    const tried = await tryApply(context, desired, acting)
    if (tried.kind === 'failed') return sink.write(unreadableLine(own, tried, hiding))
    return writeFields(sink, own, differences(tried.object, live, { hiding }), diffLine)
  })
}

export async function answerDryRun(
  context: AnswerContext,
  { service, objects }: DryRunQuestion,
  sink: AnswerSink,
  signal: AbortSignal,
): Promise<void> {
  const documents = objects === undefined ? await heldObjects(context, service) : objects.filter(isK8sObject)
  if (documents.length === 0) throw new AskRefused(questionRefusal('object_not_found.nothing_to_try', { service: serviceKey(service) }))
  const acting = actingFor(context, service)
  const read = context.replica()?.read(service)
  const row = read?.kind === 'complete' ? read.revision.row : null
  // AK3: without a row nothing bounds the objects, and the agent would try them with its own rights.
  if (row === null && context.isConfined)
    throw new AskRefused(questionRefusal('outside_service.no_revision', { service: serviceKey(service) }))
  const hidingFor = hidingInService(context, service)
  await each(documents, signal, async (document) => {
    const placed = await withNamespace(context, document, row?.namespace)
    const ref = refOf(placed)
    const refuse = (own: string) => sink.write(refusedLine(ref, { own }, 'nothing'))
    const refused = refusedObject({ id: service, row, policy: context.policy() }, ref)?.message ?? refusedNamespace(context.policy(), ref)
    if (refused !== null) return refuse(refused)
    const owner = context.state.ownerOf(refKey(ref))
    if (owner !== null && serviceKey(owner) !== serviceKey(service))
      return refuse(answerNote('managed_by', { owner: otherText(context, serviceKey(owner)) }))
    const live = await context.reads.objectOrNull(ref)
    if (live !== null && owner === null && context.isConfined) return refuse(answerNote('not_managed'))
    const hidingOfRow = hidingFor(ref)
    const hiding = hidingOfRow === 'nothing' && live !== null ? await hidingOf(context, live, ref) : hidingOfRow
    const tried = await tryApply(context, placed, acting)
    if (tried.kind === 'failed') return sink.write(refusedLine(ref, tried, hiding))
    if (live === null) return sink.write(triedLine(ref, null))
    return writeFields(sink, ref, differences(tried.object, live, { hiding }), triedLine)
  })
}

async function writeFields(sink: AnswerSink, ref: ObjectRef, found: FieldDifference[], lineOf: typeof diffLine): Promise<void> {
  const fields = found.filter(({ path }) => !isMark(path))
  await sink.write(lineOf(ref, fields.slice(0, FIELDS_MAX)))
  if (fields.length > FIELDS_MAX) await sink.write(noteLine(answerNote('fields_cut', { object: refText(ref), most: FIELDS_MAX })))
}

/** Marks that Skerry adds at a real apply; manifests, and what is kept of them, have none or older ones. */
const isMark = (path: string): boolean =>
  path.startsWith('.metadata.annotations.skerry.dev/') || path.startsWith('.metadata.labels.skerry.dev/')

/** AZ4: a caller who may ask about one service may not know of the other. */
const otherText = ({ isConfined }: AnswerContext, key: string): string => (isConfined ? answerNote('another_service') : serviceText(key))

async function heldObjects({ replica }: AnswerContext, service: Service): Promise<K8sObject[]> {
  const held = replica()
  await held?.unlock(service)
  const read = held?.read(service)
  if (read?.kind === 'incomplete')
    throw new AskRefused(questionRefusal('question_failed.incomplete', { service: serviceKey(service), why: read.why }))
  if (held === null || read?.kind !== 'complete') return []
  return [...read.revision.objects]
    .map(([rowId, doc]) => {
      const opened = isSealed(doc) ? held.open(rowId, doc) : doc
      if (opened === null)
        throw new AskRefused(questionRefusal('question_failed.sealed', { row: rowId.slice(objectRowPrefix(service).length) }))
      return JSON.parse(opened) as unknown
    })
    .filter(isK8sObject)
}

async function withNamespace({ reads }: AnswerContext, document: K8sObject, namespace: string | undefined): Promise<K8sObject> {
  const clean = cleanObject(document)
  if (clean.metadata.namespace !== undefined || namespace === undefined) return clean
  const resource = await reads.find({ group: groupOf(clean.apiVersion), kind: clean.kind })
  return resource?.namespaced ? { ...clean, metadata: { ...clean.metadata, namespace } } : clean
}

async function tryApply({ cluster, reads }: AnswerContext, object: K8sObject, acting: { as?: string }): Promise<ApplyResult> {
  const ref: ObjectRef = refOf(object)
  const resource = await reads.find(ref)
  if (resource === null) {
    const message = answerNote('kind_not_served', { kind: ref.kind, apiVersion: object.apiVersion })
    return { kind: 'failed', failure: { kind: 'not_found', status: 404, reason: 'NotServed', message } }
  }
  const version = object.apiVersion.slice(object.apiVersion.indexOf('/') + 1)
  return reads.turn(() => cluster.apply({ ...resource, version }, object, { force: true, dryRun: true, ...acting }))
}

/** A few at once, until nobody waits. */
async function each<T>(items: readonly T[], signal: AbortSignal, work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items]
  const run = async () => {
    for (let item = left.shift(); item !== undefined && !signal.aborted; item = left.shift()) await work(item)
  }
  await Promise.all(Array.from({ length: 4 }, run))
}
