// One object in full: what was reported about it, and what its agent answers now: differences, events, logs, the live
// object.
import type { ComponentChildren } from 'preact'
import { askAction } from '../state/actions.ts'
import type { AskedRef, At } from '../state/ask.ts'
import { canRestart, objectSeen, runs } from '../state/object-tree.ts'
import type { ObjectView } from '../state/reads.ts'
import { useMayOn } from '../state/rights.ts'
import { text } from '../words/first.ts'
import { more } from '../words/later.ts'
import { ActionButton, NameList } from './action.tsx'
import { awayWord } from './cluster-state.ts'
import { LiveDiff } from './live-diff.tsx'
import { LiveEvents } from './live-events.tsx'
import { LiveLogs } from './live-logs.tsx'
import { LiveYaml } from './live-yaml.tsx'
import { StateNote } from './state-note.tsx'
import { Denied, Waiting } from './states.tsx'
import { Tabs } from './tabs.tsx'
import { Age } from './time.tsx'

export type ObjectTab = 'state' | 'diff' | 'events' | 'logs' | 'yaml'

interface PanelProps {
  at: At
  of: AskedRef
  /** Null if Kubernetes made the object from one of the service's objects. */
  object: ObjectView | null
  tab: string
  onTab(tab: ObjectTab): void
  /** Since when the agent cannot answer. Null means that it can. */
  away: string | null
}

export function ObjectPanel({ at, of, object, tab, onTab, away }: PanelProps) {
  const words = more.ask.tabs
  const tabs = [
    ...(object === null ? [] : [{ id: 'state' as const, label: words.state }]),
    ...(object === null ? [] : [{ id: 'diff' as const, label: words.diff }]),
    { id: 'events' as const, label: words.events },
    ...(runs(of) ? [{ id: 'logs' as const, label: words.logs }] : []),
    { id: 'yaml' as const, label: words.yaml },
  ]
  const fallback: ObjectTab = object !== null ? 'state' : of.kind === 'Pod' ? 'logs' : 'yaml'
  const chosen = tabs.find(({ id }) => id === tab)?.id ?? fallback
  return (
    <div class="panel padded stack wide">
      <div class="row spread object-title">
        <div>
          <h3 class="mono">{of.name}</h3>
          <p class="small muted">
            {[of.namespace && more.ask.namespace(of.namespace), of.group && more.ask.group(of.group)].filter(Boolean).join(' · ')}
          </p>
        </div>
        {canRestart(of) && away === null && (
          <ActionButton
            right={{ verb: 'restart', kind: 'Service', project: at.project, name: at.service, cluster: at.cluster }}
            label={more.ask.restart}
            onClick={() => askAction({ kind: 'restart', ...at, ref: of })}
          />
        )}
      </div>
      <Tabs label={`${of.kind} ${of.name}`} tabs={tabs} chosen={chosen} onChoose={onTab}>
        {chosen === 'state' && object !== null && <Reported object={object} />}
        {chosen !== 'state' &&
          (away !== null ? (
            <div class="note">
              <p>{away}</p>
              <p class="muted">{more.ask.awayNext}</p>
            </div>
          ) : (
            <Allowed verb={chosen === 'logs' ? 'logs:read' : 'live:read'} at={at} key={chosen}>
              {chosen === 'diff' && <LiveDiff at={at} of={of} />}
              {chosen === 'events' && <LiveEvents at={at} of={of} />}
              {chosen === 'logs' && <LiveLogs at={at} of={of} />}
              {chosen === 'yaml' && <LiveYaml at={at} of={of} />}
            </Allowed>
          ))}
      </Tabs>
    </div>
  )
}

interface AllowedProps {
  verb: 'live:read' | 'logs:read'
  at: At
  children: ComponentChildren
}

/** Asked first: a refused question would be an entry of the audit log. */
function Allowed({ verb, at, children }: AllowedProps) {
  const may = useMayOn(verb, at)
  if (may === null) return <Waiting rows={4} />
  return may.allowed ? <>{children}</> : <Denied detail={may.detail} />
}

function Reported({ object }: { object: ObjectView }) {
  const { drift, images = [], warnings = [] } = object
  const seen = objectSeen(object)
  const away = awayWord(object, seen)
  return (
    <div class="stack wide">
      <StateNote {...seen} {...(away === null ? {} : { word: away })} state={object} />
      {drift !== null && (
        <div class="stack">
          <h3>{text.placement.drift}</h3>
          <p>
            {drift.deleted === true ? text.placement.wasDeleted : text.placement.fields(drift.paths.length)}{' '}
            {text.placement.by(drift.manager)}, {text.placement.driftActions[drift.action]} (<Age ms={drift.healedMs ?? drift.detectedMs} />
            )
          </p>
          {drift.paths.length > 0 && <NameList names={drift.paths} />}
        </div>
      )}
      {images.length > 0 && (
        <div class="stack">
          <h3>{text.placement.images}</h3>
          <NameList names={images} />
        </div>
      )}
      {warnings.length > 0 && (
        <div class="stack">
          <h3>{text.placement.warnings}</h3>
          {warnings.map((warning) => (
            <p key={warning} class="small">
              {warning}
            </p>
          ))}
        </div>
      )}
    </div>
  )
}
