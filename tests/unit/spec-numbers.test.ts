// Compares the limits that SPEC states with those of the code. Tests at the edges take the constants themselves: they
// would follow one that was changed by mistake.
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { HANDS } from '../../server/ingest/poll-times.ts'
import { BASES_OF_SERVICE_MAX } from '../../server/ingest/remote-bases.ts'
import { FACTS_AWAITED_MS } from '../../server/ingest/young-clusters.ts'
import { CACHE_DISK_BYTES_MAX } from '../../server/render/cache/files.ts'
import { CACHE_MEMORY_BYTES_MAX } from '../../server/render/cache/renders.ts'
import { API_VERSIONS_BYTES_MAX } from '../../server/render/helm/capabilities.ts'
import { IGNORE_LENGTH_MAX, IGNORE_RULES_MAX, IGNORE_STEPS_MAX } from '../../server/render/helm/ignore.ts'
import { HELM_VALUES_BYTES_MAX } from '../../server/render/helm/layers.ts'
import { REMOTE_BASES_MAX, REMOTE_DEPTH_MAX } from '../../server/render/kustomize/remote.ts'
import { KUSTOMIZE_FOLDERS_MAX } from '../../server/render/kustomize/scan.ts'
import {
  TEMPLATE_BYTES_MAX,
  TEMPLATE_CODE_MAX,
  TEMPLATE_DEPTH_MAX,
  TEMPLATE_ERRORS_MAX,
  TEMPLATE_MEMORY_MAX,
  TEMPLATE_OUTPUT_BYTES_MAX,
  TEMPLATE_WORK_MAX,
} from '../../server/render/liquid/limits.ts'
import { RENDER_OBJECTS_MAX, RENDER_PROBLEMS_MAX } from '../../server/render/object-rows.ts'
import { THREADS_MAX } from '../../server/render/sandbox/command.ts'
import { FOLDERS_COUNT_MS } from '../../server/render/sandbox/exec-version.ts'
import { SANDBOX_FILE_BYTES_MAX, SANDBOX_FILES_MAX } from '../../server/render/sandbox/files.ts'
import { PROCESSES_MAX, STDERR_BYTES_MAX } from '../../server/render/sandbox/process.ts'
import { SCRIPTS_MAX } from '../../server/render/typescript/closure.ts'
import { REDIRECTS_MAX } from '../../server/sources/address/guard.ts'
import { RESOLVE_MS } from '../../server/sources/address/resolve.ts'
import { ARCHIVE_BYTES_MAX } from '../../server/sources/archive/archive.ts'
import { LINK_STEPS_MAX } from '../../server/sources/archive/links.ts'
import { GIT_DISK_BYTES_MAX, GIT_FETCH_MS } from '../../server/sources/git/cli.ts'
import { GIT_ANSWER_BYTES_MAX } from '../../server/sources/git/http.ts'
import { PACK_OBJECT_BYTES_MAX } from '../../server/sources/git/pack-check.ts'
import { LINK_HOPS_MAX, TREE_STEPS_MAX } from '../../server/sources/git/places.ts'
import { SUBMODULE_DEPTH_MAX, SUBMODULES_MAX } from '../../server/sources/git/submodules.ts'
import { INDEX_BYTES_MAX } from '../../server/sources/helm/chart-index.ts'
import { SOURCE_FILE_BYTES_MAX, SOURCE_FILES_MAX, SOURCE_PATH_LENGTH_MAX, SOURCE_TREE_BYTES_MAX } from '../../server/sources/source.ts'
import { DEADLINES } from '../../server/sources/web-request.ts'
import { YAML_ALIASES_MAX, YAML_BYTES_MAX, YAML_DEPTH_MAX, YAML_NODES_MAX } from '../../shared/adapters/yaml.ts'
import { CONFIG_DATA_LENGTH_MAX, CONFIG_SECRETS_MAX, GLOB_LENGTH_MAX } from '../../shared/model/render.ts'
import { FACTS_APIS_MAX, FACTS_CHARS_MAX } from '../../shared/model/status.ts'

const SPECS = ['SPEC.md', 'SPEC-sources.md', 'SPEC-render.md', 'SPEC-config.md', 'SPEC-api.md']
  .map((name) => readFileSync(join(import.meta.dir, '../../shared', name), 'utf8'))
  .join('\n')
/** With the lines that go on below it. */
const ruleText = (id: string): string => new RegExp(`^- ${id} (.*(?:\\n {2}.*)*)`, 'm').exec(SPECS)?.[1]?.replace(/\s+/g, ' ') ?? ''

const count = (value: number): string => value.toLocaleString('en-US')
const size = (bytes: number): string => {
  const [unit, name] = bytes % 2 ** 30 === 0 ? [2 ** 30, 'GiB'] : bytes % 2 ** 20 === 0 ? [2 ** 20, 'MiB'] : [2 ** 10, 'KiB']
  return `${bytes / unit} ${name}`
}
const minutes = (ms: number): string => `${ms / 60_000} minutes`

const TOLD: ReadonlyArray<readonly [id: string, told: string]> = [
  ['SO4', `At most ${REDIRECTS_MAX} redirects`],
  ['SO7', `names over ${count(SOURCE_PATH_LENGTH_MAX)} characters`],
  ['SO7', `more than ${count(SOURCE_FILES_MAX)} entries`],
  ['SO7', `files over ${size(SOURCE_FILE_BYTES_MAX)}`],
  ['SO7', `more than ${size(ARCHIVE_BYTES_MAX)} in all`],
  ['SO8', `more than ${count(LINK_STEPS_MAX)} folders`],
  ['SO12', `at most ${size(INDEX_BYTES_MAX)}`],
  ['SO22', `at most ${LINK_HOPS_MAX} others`],
  ['SO33', `${minutes(GIT_FETCH_MS)} for a fetch`],
  ['SO33', `more than ${size(GIT_DISK_BYTES_MAX)} of disk`],
  ['SO34', `${SUBMODULE_DEPTH_MAX} deep and ${SUBMODULES_MAX} for each repository`],
  ['SO39', `no answer of more than ${size(GIT_ANSWER_BYTES_MAX)}`],
  ['SO39', `an object of more than ${size(PACK_OBJECT_BYTES_MAX)}`],
  ['SO41', `${count(TREE_STEPS_MAX)} names of paths`],
  ['SO47', `within ${RESOLVE_MS / 1_000} s`],
  ['SO47', `begin within ${DEADLINES.silentMs / 1_000} s, MUST NOT be silent for ${(2 * DEADLINES.silentMs) / 1_000} s`],
  ['SO47', `complete within ${DEADLINES.wholeMs / 1_000} s`],
  ['SB2', `at most ${count(SANDBOX_FILES_MAX)} files and ${size(SANDBOX_FILE_BYTES_MAX)}`],
  ['SB5', `${PROCESSES_MAX} processes`],
  ['SB5', `standard error is cut at ${size(STDERR_BYTES_MAX)}`],
  ['SB14', `more than ${THREADS_MAX} processes and threads`],
  ['EX3', FOLDERS_COUNT_MS === 60_000 ? 'read once a minute' : 'another time'],
  ['RN5', `At most ${count(RENDER_OBJECTS_MAX)} objects a service`],
  ['IC12', `at most ${RENDER_PROBLEMS_MAX}`],
  ['IN6', `more than ${count(SOURCE_FILES_MAX)} manifest files or ${size(SOURCE_TREE_BYTES_MAX)}`],
  ['IN9a', `${HANDS} are read at the same time`],
  [
    'YM5',
    `At most ${size(YAML_BYTES_MAX)} a file, ${YAML_DEPTH_MAX} levels, ${count(YAML_ALIASES_MAX)} aliases and ${count(YAML_NODES_MAX)} nodes`,
  ],
  ['HM10', `a .helmignore at most ${IGNORE_RULES_MAX} rules and ${size(IGNORE_LENGTH_MAX)}`],
  ['HM10', `in ${count(IGNORE_STEPS_MAX)} steps`],
  ['HM10', `values at most ${size(HELM_VALUES_BYTES_MAX)}`],
  ['HM10', `names of API versions at most ${size(API_VERSIONS_BYTES_MAX)}`],
  [
    'KU2',
    `At most ${count(KUSTOMIZE_FOLDERS_MAX)} folders with kustomizations, ${count(SOURCE_FILES_MAX)} files and ${size(SOURCE_TREE_BYTES_MAX)}`,
  ],
  ['KU14', `at most ${REMOTE_BASES_MAX} different remote bases`],
  ['KU14', `at most ${REMOTE_DEPTH_MAX} in each other, and a service at most ${BASES_OF_SERVICE_MAX}`],
  ['RN11', `at most ${GLOB_LENGTH_MAX} characters`],
  ['LQ4', `at most ${size(TEMPLATE_BYTES_MAX)}, of that ${size(TEMPLATE_CODE_MAX)}`],
  ['LQ4', `its output ${size(TEMPLATE_OUTPUT_BYTES_MAX)}`],
  ['LQ4', `at most ${count(TEMPLATE_WORK_MAX)} steps`],
  ['LQ4', `at most ${TEMPLATE_MEMORY_MAX / 2 ** 20} Mi characters`],
  ['LQ4', `goes ${TEMPLATE_DEPTH_MAX} blocks`],
  ['LQ6', `at most ${TEMPLATE_ERRORS_MAX}`],
  ['TS3', `At most ${count(SCRIPTS_MAX)} files`],
  ['CG5', `at most ${CONFIG_SECRETS_MAX} secrets`],
  ['CG5', `at most ${count(CONFIG_DATA_LENGTH_MAX)} characters`],
  ['IC9', `At most ${size(CACHE_MEMORY_BYTES_MAX)} of rows are in memory and ${size(CACHE_DISK_BYTES_MAX)} on the disk`],
  ['FA2', `At most ${count(FACTS_APIS_MAX)} group versions and kinds and ${count(FACTS_CHARS_MAX)} characters`],
  ['FA6', FACTS_AWAITED_MS === 60_000 ? 'less than a minute ago' : 'another time'],
]

test.each(TOLD)('%s tells the limit that the code has: %s', (id, told) => expect(ruleText(id)).toContain(told))
