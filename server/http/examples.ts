// One valid document of each kind, for the OpenAPI document and its page. A test checks them by the schemas of the
// kinds.
import { API_VERSION } from '../../shared/model/resources.ts'
import type { DocumentKind } from '../fleet/records.ts'

const of = (kind: DocumentKind, metadata: object, spec: object) => ({ apiVersion: API_VERSION, kind, metadata, spec })

export const EXAMPLES: Readonly<Record<DocumentKind, object>> = {
  Repository: of('Repository', { name: 'apps', project: 'shop' }, { git: { url: 'https://git.example.com/shop/apps.git', ref: 'main' } }),
  Service: of(
    'Service',
    { name: 'web', project: 'shop', labels: { team: 'web' } },
    { source: { repository: 'apps', path: 'web' }, targets: { selector: { matchLabels: { env: 'prod' } } }, namespace: 'web' },
  ),
  Cluster: of('Cluster', { name: 'oslo', labels: { env: 'prod', region: 'eu' } }, {}),
  Config: of('Config', { name: 'colours', project: 'shop' }, { data: { colour: 'blue', replicas: 2 } }),
  HealthRule: of(
    'HealthRule',
    { name: 'things' },
    { group: 'example.com', kind: 'Thing', degraded: { when: "status.phase == 'Failed'" }, healthy: { when: "status.phase == 'Ready'" } },
  ),
  Project: of(
    'Project',
    { name: 'shop' },
    {
      sources: ['https://git.example.com/shop/*'],
      destinations: [{ clusters: { matchLabels: { tenant: 'shop' } }, namespaces: ['shop-*'] }],
    },
  ),
  Role: of('Role', { name: 'syncer' }, { rules: [{ verbs: ['read', 'sync'], kinds: ['Service'] }] }),
  RoleBinding: of(
    'RoleBinding',
    { name: 'shop-operators' },
    { role: 'operator', subjects: [{ group: 'shop-on-call' }], projects: ['shop'] },
  ),
  NotificationSink: of(
    'NotificationSink',
    { name: 'ops-chat', project: 'shop' },
    { slack: { channel: '#ops' }, auth: { secretRef: 'slack' } },
  ),
  NotificationRoute: of(
    'NotificationRoute',
    { name: 'degraded', project: 'shop' },
    { sinks: ['ops-chat'], events: ['Degraded', 'RenderFailed'], services: ['web*'] },
  ),
}
