// Notifications: what was sent where and what failed, the sinks that receive messages, and the routes that decide which
// events become one.

import { useState } from 'preact/hooks'
import type {
  NotificationRouteView,
  NotificationSinkView,
  NotificationTestAnswer,
  NotificationView,
} from '../../../../shared/model/notification-views.ts'
import { names, number } from '../format.ts'
import { ActionButton, ActionDialog } from '../parts/action.tsx'
import { Head } from '../parts/head.tsx'
import { MarkWord } from '../parts/mark.tsx'
import { Denied, Empty, Section, Shown, Table, Waiting } from '../parts/states.tsx'
import { Age, Moment } from '../parts/time.tsx'
import { useFilters } from '../state/address.ts'
import { call } from '../state/api.ts'
import type { Mark } from '../state/mark-of.ts'
import { useResource } from '../state/resource.ts'
import { type Right, useMay } from '../state/rights.ts'
import { text } from '../words/first.ts'
import { more } from '../words/later.ts'

const words = more.notifications
const STATES = ['waiting', 'delivered', 'failed', 'dead'] as const
const MARK_OF: Readonly<Record<NotificationView['state'], Mark>> = { waiting: 'changing', delivered: 'ok', failed: 'drift', dead: 'bad' }

type Listed = 'GET /notifications' | 'GET /notification-sinks' | 'GET /notification-routes'
const useList = <R extends Listed>(route: R, query: Record<string, string | number>) =>
  useResource(
    `${route} ${JSON.stringify(query)}`,
    (signal) => call(route, { query, signal }),
    ({ topic, name }) => topic === 'notification' || (topic === 'resource' && (name?.startsWith('Notification') ?? true)),
  )

export function NotificationsPage() {
  const may = useMay('read', 'NotificationRoute', 'some')
  return (
    <>
      <Head title={words.title} />
      {may === null ? (
        <Waiting rows={8} />
      ) : may.allowed ? (
        <div class="stack far">
          <Messages />
          <Sinks />
          <Routes />
        </div>
      ) : (
        <Denied detail={may.detail} />
      )}
    </>
  )
}

function Messages() {
  const { filters, set } = useFilters()
  const state = filters['state'] ?? ''
  const messages = useList('GET /notifications', { limit: 100, state })
  return (
    <section>
      <div class="filters">
        <h2>{words.messages}</h2>
        <select aria-label={words.state} value={state} onChange={(event) => set({ state: event.currentTarget.value })}>
          <option value="">{words.anyState}</option>
          {STATES.map((one) => (
            <option key={one} value={one}>
              {words.states[one]}
            </option>
          ))}
        </select>
      </div>
      <div class="panel table-wrap">
        <Shown of={messages} rows={4}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty title={words.noMessages} next={words.noMessagesNext} />
            ) : (
              <Table
                label={words.messages}
                heads={[words.columns.state, words.columns.message, words.columns.sink, words.columns.when]}
                last={words.retry}
              >
                {items.map((one) => (
                  <MessageRow key={one.id} of={one} onDone={messages.refresh} />
                ))}
              </Table>
            )
          }
        </Shown>
      </div>
    </section>
  )
}

function MessageRow({ of, onDone }: { of: NotificationView; onDone(): void }) {
  const { state, title, severity, members, active, total, resolved, sink, project, route, error, attempts, sentMs, updatedMs, nextMs } = of
  return (
    <tr>
      <td data-head={words.columns.state}>
        <MarkWord mark={MARK_OF[state]} word={words.states[state]} />
      </td>
      <td data-head={words.columns.message}>
        <p>{title}</p>
        <p class="small muted">
          {[
            words.severities[severity],
            resolved ? words.resolved : words.active(active, total),
            names(members, Math.max(members.length, active)),
          ]
            .filter(Boolean)
            .join(' · ')}
        </p>
        {error !== null && (
          <p class="small badly">
            {error} · {more.n.attempts(attempts)}
          </p>
        )}
      </td>
      <td data-head={words.columns.sink}>
        <span class="mono">{project === null ? sink : `${project}/${sink}`}</span>
        {route !== null && <p class="small muted">{words.byRoute(route)}</p>}
      </td>
      <td data-head={words.columns.when} class="muted">
        <Age ms={sentMs ?? updatedMs} />
        {state !== 'delivered' && nextMs !== null && (
          <p class="small">
            {words.next} <Moment ms={nextMs} />
          </p>
        )}
      </td>
      <td class="act">
        {state === 'dead' && (
          <Act
            right={sinkRight(project, sink)}
            label={words.retry}
            title={more.reasons.retryTitle}
            effect={more.reasons.retryEffect(sink, title)}
            act={(reason) => call('POST /notifications/:id/retry', { params: { id: of.id }, reason })}
            onDone={onDone}
          />
        )}
      </td>
    </tr>
  )
}

const sinkRight = (project: string | null, name: string): Right => ({
  ...{ verb: 'notify:test', kind: 'NotificationSink', name },
  ...(project === null || project === '' ? {} : { project }),
})

interface ActProps<T> {
  right: Right
  label: string
  title: string
  effect: string
  act(reason: string): Promise<T>
  said?: (answer: T) => string
  onDone?(): void
}

/** A button that says beside itself how it went. */
function Act<T>({ right, label, title, effect, act, said, onDone }: ActProps<T>) {
  const [words, setWords] = useState('')
  const [isOpen, setOpen] = useState(false)
  return (
    <span class="row tight acted">
      <span class="small muted" role="status">
        {words}
      </span>
      <ActionButton right={right} label={label} about={title} onClick={() => setOpen(true)} />
      {isOpen && (
        <ActionDialog<undefined>
          title={title}
          label={label}
          right={right}
          describe={() => <p>{effect}</p>}
          act={async (_, reason) => setWords(said?.(await act(reason)) ?? '')}
          onDone={() => onDone?.()}
          onClose={() => setOpen(false)}
        />
      )}
    </span>
  )
}

const testSink = ({ project, name }: { project?: string | undefined; name: string }, reason: string): Promise<NotificationTestAnswer> =>
  project === undefined || project === ''
    ? call('POST /notification-sinks/:name/test', { params: { name }, reason })
    : call('POST /projects/:project/notification-sinks/:name/test', { params: { project, name }, reason })

const keyOf = ({ metadata: { project, name } }: { metadata: { project?: string | undefined; name: string } }): string =>
  project === undefined || project === '' ? name : `${project}/${name}`

function Sinks() {
  const sinks = useList('GET /notification-sinks', { limit: 200 })
  const mayTest = useMay('notify:test', 'NotificationSink', 'some')?.allowed === true
  const { columns } = words
  return (
    <Section title={words.sinks}>
      <div class="panel table-wrap">
        <Shown of={sinks}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty title={words.noSinks} next={words.noSinksNext} />
            ) : (
              <Table
                label={words.sinks}
                heads={[columns.sink, columns.type, columns.state, columns.sent]}
                last={mayTest ? words.test : null}
              >
                {items.map((sink) => (
                  <tr key={keyOf(sink)}>
                    <td class="mono">{keyOf(sink)}</td>
                    <td data-head={columns.type}>{sink.status.type}</td>
                    <td data-head={columns.state}>
                      <SinkState of={sink} />
                    </td>
                    <td data-head={columns.sent} class="muted">
                      {sink.status.lastSentMs === null ? text.access.never : <Age ms={sink.status.lastSentMs} />}
                    </td>
                    {mayTest && (
                      <td class="act">
                        <Act
                          right={sinkRight(sink.metadata.project ?? null, sink.metadata.name)}
                          label={words.test}
                          title={more.reasons.testTitle(keyOf(sink))}
                          effect={more.reasons.testEffect(keyOf(sink), sink.status.type)}
                          act={(reason) => testSink(sink.metadata, reason)}
                          said={({ delivered, detail, durationMs }) => words.tested(delivered, detail, number(durationMs))}
                        />
                      </td>
                    )}
                  </tr>
                ))}
              </Table>
            )
          }
        </Shown>
      </div>
    </Section>
  )
}

function SinkState({ of: { spec, status } }: { of: NotificationSinkView }) {
  const { waiting, dead, error } = status
  const mark: Mark = spec.paused === true ? 'suspended' : dead > 0 ? 'bad' : error !== null ? 'drift' : 'ok'
  const word = spec.paused === true ? words.paused : dead > 0 ? words.dead(dead) : error !== null ? words.failing : words.delivering
  return (
    <>
      <MarkWord mark={mark} word={word} />
      {(waiting > 0 || error !== null) && (
        <p class="small muted">{[waiting > 0 ? words.waiting(waiting) : '', error ?? ''].filter(Boolean).join(' · ')}</p>
      )}
    </>
  )
}

function Routes() {
  const routes = useList('GET /notification-routes', { limit: 200 })
  const { columns } = words
  return (
    <Section title={words.routes}>
      <div class="panel table-wrap">
        <Shown of={routes}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty title={words.noRoutes} next={words.noRoutesNext} />
            ) : (
              <Table label={words.routes} heads={[columns.route, columns.events, columns.sink, columns.open]}>
                {items.map((route) => (
                  <tr key={keyOf(route)}>
                    <td class="mono">{keyOf(route)}</td>
                    <td data-head={columns.events}>{eventText(route)}</td>
                    <td data-head={columns.sink} class="mono">
                      {route.spec.sinks.join(', ')}
                      {route.status.missingSinks.length > 0 && (
                        <p class="small badly">{words.missing(route.status.missingSinks.join(', '))}</p>
                      )}
                    </td>
                    <td data-head={columns.open}>{number(route.status.open)}</td>
                  </tr>
                ))}
              </Table>
            )
          }
        </Shown>
      </div>
    </Section>
  )
}

function eventText({ spec: { events, severity, projects, services, clusters } }: NotificationRouteView): string {
  const labels = Object.entries(clusters?.matchLabels ?? {}).map(([key, value]) => `${key}=${value}`)
  return [
    `${events === undefined ? words.allEvents : events.join(', ')} ${words.from(words.severities[severity])}`,
    projects === undefined ? '' : words.ofProjects(projects.join(', ')),
    services === undefined ? '' : words.ofServices(services.join(', ')),
    labels.length === 0 ? '' : words.inClusters(labels.join(', ')),
  ]
    .filter(Boolean)
    .join(' · ')
}
