// The sizes and counts that users can meet, with the constants of the code.

import { WATCHES_MAX } from '../../agent/cluster/kube-http.ts'
import { PRUNE_COUNT_SMALL } from '../../agent/reconcile/plan/prune/prune-guard.ts'
import { REQUESTS_MAX } from '../../agent/reconcile/requests/request-scheduler.ts'
import { RESERVE_BYTES } from '../../agent/state/disk-reserve.ts'
import { OUTBOX_EVENTS_MAX } from '../../agent/state/outbox-events.ts'
import { DAILY_BYTES_METERED } from '../../agent/sync/traffic-day.ts'
import { FIRST_TOKEN_MS } from '../../server/access/api-tokens.ts'
import { SESSION_MS } from '../../server/access/sessions.ts'
import { REMOVALS_PERCENT_MAX, REMOVALS_SMALL } from '../../server/fleet/guard.ts'
import { JSON_DEPTH_MAX } from '../../server/http/body.ts'
import { STREAMS_MAX, STREAMS_OF_CALLER_MAX } from '../../server/http/change-stream.ts'
import { KEPT_MAX, KEPT_OF_ONE_MAX } from '../../server/http/idempotency.ts'
import { LABELS_MAX, SELECTOR_PARTS_MAX } from '../../server/http/resource-checks.ts'
import { PROBES_MAX } from '../../server/http/secret-probes.ts'
import { WEBHOOK_BODY_BYTES_MAX } from '../../server/http/webhook.ts'
import { DEPENDENCIES_READ } from '../../server/http/why-routes.ts'
import { HELM_VALUES_BYTES_MAX } from '../../server/render/helm/layers.ts'
import { KUSTOMIZE_FOLDERS_MAX } from '../../server/render/kustomize/scan.ts'
import { TEMPLATE_BYTES_MAX, TEMPLATE_DEPTH_MAX, TEMPLATE_OUTPUT_BYTES_MAX, TEMPLATE_WORK_MAX } from '../../server/render/liquid/limits.ts'
import { RENDER_OBJECTS_MAX } from '../../server/render/object-rows.ts'
import { ARCHIVE_BYTES_MAX } from '../../server/sources/archive/archive.ts'
import { GIT_DISK_BYTES_MAX } from '../../server/sources/git/cli.ts'
import { GIT_ANSWER_BYTES_MAX } from '../../server/sources/git/http.ts'
import { SUBMODULE_DEPTH_MAX, SUBMODULES_MAX } from '../../server/sources/git/submodules.ts'
import { INDEX_BYTES_MAX } from '../../server/sources/helm/chart-index.ts'
import { SOURCE_FILE_BYTES_MAX, SOURCE_FILES_MAX, SOURCE_TREE_BYTES_MAX } from '../../server/sources/source.ts'
import { CHANGES_KEPT_MAX, CHANGES_KEPT_MS } from '../../server/store/feed/change-feed.ts'
import { STATUS_ROWS_PER_CLUSTER_MAX } from '../../server/store/status/status-rows.ts'
import { EVENTS_MAX } from '../../server/store/status/store-events.ts'
import { YAML_ALIASES_MAX, YAML_BYTES_MAX, YAML_DEPTH_MAX, YAML_NODES_MAX } from '../../shared/adapters/yaml.ts'
import { STATUS_GRACE_MS } from '../../shared/kube/health-object.ts'
import { CONFIG_DATA_LENGTH_MAX, CONFIG_HOSTS_MAX, CONFIG_SECRETS_MAX, CONFIG_SOURCES_MAX } from '../../shared/model/render.ts'
import { SAVED_QUERIES_MAX } from '../../shared/model/saved-queries.ts'
import { SITE_CHARS_MAX, SITE_KEYS_MAX, SITE_MAPS_MAX, SITE_VALUE_CHARS_MAX } from '../../shared/model/site-config.ts'
import { ADMIN_BODY_BYTES_MAX, APPLY_RESOURCES_MAX, LIST_LIMIT_MAX } from '../../shared/model/views.ts'
import { KEY_LINKS_MAX } from '../../shared/protocol/key-links.ts'
import {
  PAGE_BYTES_MAX,
  PAGE_ROWS_MAX,
  PART_BYTES_MAX,
  ROW_DOC_BYTES_MAX,
  ROW_ID_BYTES_MAX,
  WAIT_SECONDS_MAX,
} from '../../shared/protocol/routes.ts'
import { NAME_LENGTH_MAX } from '../../shared/runtime/ids.ts'

const plain = (count: number): string => count.toLocaleString('en-US')
const size = (bytes: number): string => {
  for (const [unit, unitBytes] of [
    ['GiB', 1024 ** 3],
    ['MiB', 1024 ** 2],
    ['KiB', 1024],
  ] as const)
    if (bytes >= unitBytes && bytes % unitBytes === 0) return `${plain(bytes / unitBytes)} ${unit}`
  return `${plain(bytes)} bytes`
}
const time = (ms: number): string => {
  for (const [unit, unitMs] of [
    ['days', 86_400_000],
    ['hours', 3_600_000],
    ['minutes', 60_000],
  ] as const)
    if (ms >= 2 * unitMs && ms % unitMs === 0) return `${plain(ms / unitMs)} ${unit}`
  return `${plain(ms / 1_000)} s`
}

/** Title of a section → what is limited, and the limit. */
export const SIZES: Readonly<Record<string, ReadonlyArray<readonly [what: string, limit: string]>>> = {
  'Resources and the API': [
    ['length of a name', `${NAME_LENGTH_MAX} characters`],
    ['resources in one `skerry apply`', plain(APPLY_RESOURCES_MAX)],
    ['body of an API request', size(ADMIN_BODY_BYTES_MAX)],
    ['nesting of an API request', `${plain(JSON_DEPTH_MAX)} levels`],
    ['labels of a resource', plain(LABELS_MAX)],
    ['labels, conditions and values of all selectors of a resource', plain(SELECTOR_PARTS_MAX)],
    ['items of one page of a list', plain(LIST_LIMIT_MAX)],
    ['secrets of a Config', plain(CONFIG_SECRETS_MAX)],
    ['external values of a Config', plain(CONFIG_SOURCES_MAX)],
    ['dry runs with values of secrets, of one caller for one Config in ten minutes', plain(PROBES_MAX)],
    ['keys of one siteConfig', plain(SITE_KEYS_MAX)],
    ['ConfigMaps that the services of a cluster name', plain(SITE_MAPS_MAX)],
    ['characters of one value of a site, and of all of a cluster', `${plain(SITE_VALUE_CHARS_MAX)}, ${plain(SITE_CHARS_MAX)}`],
    ['hosts of a Config', plain(CONFIG_HOSTS_MAX)],
    ['saved queries', plain(SAVED_QUERIES_MAX)],
    ['data of a Config as JSON', `${plain(CONFIG_DATA_LENGTH_MAX)} characters`],
    ['streams of the change feed', `${plain(STREAMS_MAX)}, ${plain(STREAMS_OF_CALLER_MAX)} of one caller`],
    ['kept answers for an Idempotency-Key', `${plain(KEPT_MAX)}, ${plain(KEPT_OF_ONE_MAX)} of one credential`],
    ['dependencies that one explanation looks at', plain(DEPENDENCIES_READ)],
    ['changes that the feed keeps', `${plain(CHANGES_KEPT_MAX)}, of the last ${time(CHANGES_KEPT_MS)}`],
    ['events that the server keeps', plain(EVENTS_MAX)],
    ['validity of the first admin token', time(FIRST_TOKEN_MS)],
    ['body of a webhook', size(WEBHOOK_BODY_BYTES_MAX)],
  ],
  Sources: [
    ['files of a folder of manifests', plain(SOURCE_FILES_MAX)],
    ['size of a file', size(SOURCE_FILE_BYTES_MAX)],
    ['size of all files that are read at once', size(SOURCE_TREE_BYTES_MAX)],
    ['size of a packed chart or layer', size(ARCHIVE_BYTES_MAX)],
    ['size of the index of a Helm repository', size(INDEX_BYTES_MAX)],
    ['answer of a Git server to the library; above it the git program is used', size(GIT_ANSWER_BYTES_MAX)],
    ['disk of a repository that the git program reads', size(GIT_DISK_BYTES_MAX)],
    ['submodules of a repository', `${SUBMODULES_MAX}, nested ${SUBMODULE_DEPTH_MAX} deep`],
  ],
  Rendering: [
    ['objects of a service', plain(RENDER_OBJECTS_MAX)],
    ['size of an object', size(ROW_DOC_BYTES_MAX)],
    ['size of a YAML file', size(YAML_BYTES_MAX)],
    ['a YAML document', `${YAML_DEPTH_MAX} levels, ${plain(YAML_NODES_MAX)} nodes, ${plain(YAML_ALIASES_MAX)} aliases`],
    ['size of a template', size(TEMPLATE_BYTES_MAX)],
    ['output of a template', size(TEMPLATE_OUTPUT_BYTES_MAX)],
    ['steps of all templates of one source', plain(TEMPLATE_WORK_MAX)],
    ['nesting of blocks and partials', plain(TEMPLATE_DEPTH_MAX)],
    ['Helm values as JSON', size(HELM_VALUES_BYTES_MAX)],
    ['folders of a kustomization', plain(KUSTOMIZE_FOLDERS_MAX)],
  ],
  'Sync between server and agent': [
    ['status rows of a cluster', plain(STATUS_ROWS_PER_CLUSTER_MAX)],
    ['id of a row', size(ROW_ID_BYTES_MAX)],
    ['rows of a page', plain(PAGE_ROWS_MAX)],
    ['size of a page', size(PAGE_BYTES_MAX)],
    ['size above which a page travels in parts', size(PART_BYTES_MAX)],
    ['longest poll', time(WAIT_SECONDS_MAX * 1_000)],
    ['validity of a session', time(SESSION_MS)],
    ['rotations of the signing key that an agent can follow', plain(KEY_LINKS_MAX)],
    ['daily bytes of a metered agent by default', plain(DAILY_BYTES_METERED)],
    ['events that wait in an agent', plain(OUTBOX_EVENTS_MAX)],
    ['disk that an agent keeps in reserve', size(RESERVE_BYTES)],
  ],
  'Work in a cluster': [
    ['concurrent requests of reconciliation', plain(REQUESTS_MAX)],
    ['concurrent watches', plain(WATCHES_MAX)],
    ['grace time of a custom object without a status', time(STATUS_GRACE_MS)],
    ['objects of a service that are pruned whatever their share', plain(PRUNE_COUNT_SMALL)],
    ['clusters that a service leaves whatever their share', plain(REMOVALS_SMALL)],
    ['share of the clusters of a service above which a removal waits', `${REMOVALS_PERCENT_MAX} %`],
  ],
}
