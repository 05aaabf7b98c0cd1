// Where manifests come from: what a Repository says, and what a Service takes of it.
import { z } from 'zod'
import { nameSchema } from './ids.ts'

/** For refinements of mappings: they also hold where a field of the mapping is wrong, so that everything is told at once. What they look at may be anything then. */
export const isMapping = ({ value }: { value: unknown }): boolean => typeof value === 'object' && value !== null && !Array.isArray(value)

export const NO_RANGE = 'expected a range of versions, such as ^1.4, ~1.2.3 or >=1.2.0 <2.0.0'
/** What is none at first sight. Which it is in truth only the server knows, who has a parser of them. */
const looksLikeRange = (text: string): boolean => text.split(/[\s,]+|\|\|/).every((part) => /^([!<>=^~]*v?(\d.*|[xX*].*)?|-)$/.test(part))

/** The name of a Config of the same project; which of its secrets are read is said where it is used. */
const secretRefSchema = nameSchema
/** SO46. Over https: `username` and `password` (or `token` in its place), or `token` alone (bearer; to Git first as a password), a CA of its own as `caCert`; Git also `githubApp`, a JSON
 *  document of appId, installationId, privateKey and, for a GitHub whose API is not where its host says, apiUrl; ssh: `sshKey` and `knownHosts`. */
const authSchema = z.strictObject({
  secretRef: secretRefSchema.describe(
    'A Config of the same project, whose secrets are: token; username and password (or token); githubApp (JSON: appId, installationId, privateKey, apiUrl if need be); sshKey and knownHosts; caCert.',
  ),
})

const SCP_FORM = /^[a-z_][-a-z0-9_.]*@[A-Za-z0-9][-A-Za-z0-9.]*:(?!\/\/)[^\s]+$/
const isUrlOf = (schemes: readonly string[]) => (text: string) =>
  schemes.some((scheme) => text.startsWith(`${scheme}://`)) && URL.canParse(text)
const NO_CREDENTIALS = 'must not hold a user name or password: specs are shown to everyone who may read them'
const holdsCredentials = (text: string): boolean => {
  if (!URL.canParse(text)) return false
  const { protocol, username, password } = new URL(text)
  return password !== '' || (username !== '' && protocol !== 'ssh:')
}

export const gitUrlSchema = z
  .string()
  .max(2048)
  .refine(
    (text) => isUrlOf(['http', 'https', 'ssh'])(text) || SCP_FORM.test(text),
    'expected an http://, https:// or ssh:// URL, or user@host:path',
  )
  .refine((text) => !holdsCredentials(text), NO_CREDENTIALS)
export const webUrlSchema = z
  .string()
  .max(2048)
  .refine(isUrlOf(['http', 'https']), 'expected an http:// or https:// URL')
  .refine((text) => !holdsCredentials(text), NO_CREDENTIALS)
/** Host, port and path of one OCI repository, without tag or digest. */
const ociUrlSchema = z
  .string()
  .max(2048)
  .regex(/^oci:\/\/[A-Za-z0-9][-A-Za-z0-9.]*(:[0-9]{1,5})?(\/[a-z0-9]+([._-]+[a-z0-9]+)*)+$/, 'expected oci://host/path, without a tag')

/** As npm and Helm write them: `>=1.2.0 <2.0.0`, `^1.4`, `~1.2.3`, `1.x`. */
const semverRangeSchema = z.string().min(1).max(200).refine(looksLikeRange, NO_RANGE)

const gitSchema = z
  .strictObject({
    url: gitUrlSchema.describe('https://host/path, http://…, ssh://user@host/path or user@host:path; without user name and password.'),
    // Without a default here: with semver there is none, and what was written could not be told from it.
    ref: z
      .string()
      .min(1)
      .max(255)
      .optional()
      .describe(
        'Branch, tag, full name of a ref (refs/…), HEAD (what the repository itself calls its default branch), or full commit id. Default main, unless semver is given.',
      ),
    semver: semverRangeSchema
      .optional()
      .describe('Instead of ref: the greatest tag in this range of versions, such as "^1.4", "~1.2.3", "1.x" or ">=1.2.0 <2.0.0".'),
    auth: authSchema.optional().describe('The credential with which it is read; without it, none.'),
    submodules: z.boolean().optional().describe('Files of submodules are read, too. Default false: they are refused by name.'),
    submoduleCredentials: z
      .boolean()
      .optional()
      .describe('The credential of auth is also sent for submodules on the same host. Default false: submodules are read without one.'),
    client: z
      .enum(['auto', 'library', 'cli'])
      .optional()
      .describe(
        'library: no process, for https, up to 96 MiB. cli: the git program, for ssh and for larger repositories. Default auto: by the URL, and by the size once it is known.',
      ),
    verify: z
      .strictObject({
        keys: z
          .array(z.string().min(1).max(65_536))
          .min(1)
          .max(50)
          .describe(
            'Armored OpenPGP public keys, or SSH public keys as a line of authorized_keys has them: "ssh-ed25519 AAAA… alice@example.com".',
          ),
      })
      .optional()
      .describe('Nothing is rendered of a commit that none of these keys signed; what was verified before stays.'),
  })
  .refine(({ ref, semver }) => semver === undefined || ref === undefined, {
    message: 'ref and semver exclude each other',
    path: ['semver'],
    when: isMapping,
  })

const helmRepositorySchema = z.strictObject({
  url: webUrlSchema.describe('Where index.yaml is: https://charts.example.com; without user name and password.'),
  auth: authSchema.optional().describe('The credential with which it is read; without it, none.'),
})

const ociSchema = z
  .strictObject({
    url: ociUrlSchema.describe('oci://host/path or oci://host:port/path, without a tag.'),
    tag: z.string().max(128).optional().describe('A tag, which may move: 6.5.2, stable.'),
    semver: semverRangeSchema.optional().describe('The greatest tag in this range of versions, such as "6.x" or ">=1.2.0 <2.0.0".'),
    digest: z
      .string()
      .regex(/^sha256:[0-9a-f]{64}$/, 'expected sha256: and 64 hex digits')
      .optional()
      .describe('Exactly this artifact: sha256: and 64 hex digits.'),
    auth: authSchema.optional().describe('The credential with which it is read; without it, none.'),
    insecure: z
      .boolean()
      .optional()
      .describe('Plain HTTP, to addresses of --source-addresses only: for the registry of a test. Default false.'),
  })
  .refine(({ tag, semver, digest }) => [tag, semver, digest].filter((one) => one !== undefined).length === 1, {
    message: 'expected one of tag, semver and digest',
    when: isMapping,
  })

/** Exactly one of the three is there. */
export const repositorySourceShape = {
  git: gitSchema.optional().describe('A Git repository, at one ref. One of git, helm and oci has to be there.'),
  helm: helmRepositorySchema.optional().describe('A Helm repository: charts behind an index.yaml.'),
  oci: ociSchema.optional().describe('A chart or an artifact of manifests in an OCI registry.'),
}
export type GitSpec = z.infer<typeof gitSchema> & { ref: string }
export type HelmRepositorySpec = z.infer<typeof helmRepositorySchema>
export type OciSpec = z.infer<typeof ociSchema>

/** A path inside a tree: relative, forward slashes, no `..`; `.` is the root. */
export const treePathSchema = z
  .string()
  .min(1)
  .max(1024)
  .refine(
    (path) => !path.startsWith('/') && !path.includes('\\') && !path.split('/').includes('..'),
    'expected a relative path without ".."',
  )

export const pickShape = {
  repository: nameSchema.describe('A Repository of the same project.'),
  path: treePathSchema
    .optional()
    .describe(
      'A folder of a Git repository or an OCI artifact, relative to its root: apps/shop, or . for all of it. It may be a template: overlays/{{ cluster.name }}.',
    ),
  chart: z
    .string()
    .regex(/^[a-zA-Z0-9][-a-zA-Z0-9_.]*$/, 'expected the name of a chart')
    .max(250)
    .optional()
    .describe('A chart of a Helm repository, by its name.'),
  version: semverRangeSchema
    .optional()
    .describe('Version of the chart, or a range of them such as "^6" or "6.5.x"; default the newest that is no pre-release.'),
}
interface Picked {
  path?: string | undefined
  chart?: string | undefined
  version?: string | undefined
}
export const picksOne = ({ path, chart }: Picked): boolean => (path === undefined) !== (chart === undefined)
export const PICKS_ONE = 'expected a path, or a chart of a Helm repository'
export const versionsChart = ({ chart, version }: Picked): boolean => version === undefined || chart !== undefined
export const VERSIONS_CHART = 'version is of a chart; of anything else the repository names it'
