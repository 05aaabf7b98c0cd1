// Revocation of a cluster: the server refuses its agent; what is applied there stays. The same button admits it again.
import { useState } from 'preact/hooks'
import { call } from '../state/api.ts'
import { type Blast, readBlast } from '../state/blast.ts'
import type { ClusterView } from '../state/reads.ts'
import { refreshAll } from '../state/resource.ts'
import { more } from '../words/later.ts'
import { ActionDialog, NameList } from './action.tsx'

const words = more.revoke

export function RevokeCluster({ view }: { view: ClusterView }) {
  const [isOpen, setOpen] = useState(false)
  const { apiVersion, metadata, spec } = view
  const { name, labels } = metadata
  const label = spec.revoked ? words.admit : words.revoke
  const act = (reason: string) => {
    const resource = { apiVersion, kind: 'Cluster', metadata: { name, labels }, spec: { ...spec, revoked: !spec.revoked } }
    return call('POST /apply', { body: { resources: [resource], dryRun: false }, reason })
  }
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        {label}
      </button>
      {isOpen && (
        <ActionDialog<Blast>
          title={`${label} ${name}`}
          label={label}
          right={{ verb: 'write', kind: 'Cluster', name }}
          plan={() => readBlast({ cluster: name })}
          describe={({ names, services }) => (
            <>
              <p>{spec.revoked ? words.admitEffect(name, services) : words.effect(name, services)}</p>
              <NameList names={names} />
            </>
          )}
          act={(_, reason) => act(reason)}
          onDone={refreshAll}
          onClose={() => setOpen(false)}
        />
      )}
    </>
  )
}
