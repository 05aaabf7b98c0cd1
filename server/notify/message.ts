// The message of a record, with the texts of the route's templates in place of ours.
import type { NotificationRouteSpec } from '../../shared/model/notifications.ts'
import { AppError, type Problem } from '../../shared/runtime/error.ts'
import type { NotificationDoc } from '../fleet/notification-records.ts'
import type { GroupRecord } from './groups.ts'
import { cut } from './sinks/http.ts'
import type { Message } from './sinks/sink.ts'
import { textOf, titleOf } from './texts.ts'

/** Renders Liquid templates in a worker. Null means a template fails, and why. */
export type RenderTexts = (
  project: string,
  templates: Readonly<Record<string, string>>,
  message: Readonly<Record<string, unknown>>,
) => Promise<{ texts: Readonly<Record<string, string>> } | { problem: string; problems: Problem[] }>

export interface MessageDeps {
  /** Names this installation in the keys of receivers. */
  instance: string
  /** Address of the dashboard. */
  url(): string
  renderTexts: RenderTexts
}

const TITLE_MAX = 300
const TEXT_MAX = 8_000

export async function messageOf(
  { id, doc, project, groupKey }: Pick<GroupRecord, 'id' | 'doc' | 'project' | 'groupKey'>,
  version: number,
  template: NotificationRouteSpec['template'],
  deps: MessageDeps,
): Promise<Message> {
  const groupId = `skerry-${deps.instance}-${id}`
  const message = { ...factsOf(doc), groupId, version, dedupeKey: `${groupId}.${version}`, url: pageOf(doc, deps.url()) }
  const texts = { title: titleOf(doc), text: textOf(doc) }
  if (template === undefined) return { ...message, ...texts }
  const facts = { ...message, ...texts, group: groupKey }
  // NT8: a message with the standard text is better than none, also when the worker ends the template at its limits.
  const rendered = await deps
    .renderTexts(project, template as Record<string, string>, facts)
    .catch((error: unknown) => ({ problem: error instanceof AppError ? error.message : 'the worker ended', problems: [] }))
  if ('problem' in rendered) return { ...message, ...texts, text: `${texts.text}\n(template failed: ${rendered.problem})` }
  const title = cut(oneLine(rendered.texts['title'] ?? texts.title), TITLE_MAX)
  return { ...message, title: title === '' ? texts.title : title, text: cut(rendered.texts['text'] ?? texts.text, TEXT_MAX) }
}

const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ').trim()

type Facts = Omit<Message, 'groupId' | 'version' | 'dedupeKey' | 'url' | 'title' | 'text'>

function factsOf(doc: NotificationDoc): Facts {
  if (doc.type === 'commit') {
    const { project, service, sha, state } = doc
    const severity = state === 'failure' ? 'warning' : 'info'
    const counts = { members: [], active: 0, total: 0, firstMs: 0, lastMs: 0 }
    return { severity, reason: 'CommitStatus', resolved: state === 'success', project, service, after: sha, ...counts }
  }
  const { severity, reason, resolved, project, service, after, members, unnamed, total, firstMs, lastMs } = doc
  return {
    severity,
    reason,
    resolved,
    project,
    service,
    after,
    members: members.filter((member) => member !== ''),
    active: members.length + unnamed,
    total,
    firstMs,
    lastMs,
  }
}

export const pageOf = ({ project, service }: Pick<NotificationDoc, 'project' | 'service'>, url: string): string =>
  service === null || project === null ? `${url}/` : `${url}/services/${encodeURIComponent(project)}/${encodeURIComponent(service)}`
