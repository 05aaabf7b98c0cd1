// Schemas of sources: the spec of a Repository, and the part of it that a Service uses.
import { z } from 'zod'
import { nameSchema } from '../runtime/ids.ts'

/**
 * For refinements of mappings: they also run where a field of the mapping is wrong, so that all problems are reported
 * at once. The checked value may then be anything.
 */
export const isMapping = ({ value }: { value: unknown }): boolean => typeof value === 'object' && value !== null && !Array.isArray(value)

export const NO_RANGE = 'expected a range of versions, such as ^1.4, ~1.2.3 or >=1.2.0 <2.0.0'
/** A text that is clearly no range. Only the server has a parser that decides exactly. */
const looksLikeRange = (text: string): boolean => text.split(/[\s,]+|\|\|/).every((part) => /^([!<>=^~]*v?(\d.*|[xX*].*)?|-)$/.test(part))

/** The name of a Config of the same project; which of its secrets are read is said where it is used. */
const secretRefSchema = nameSchema
/** SO46. Over https: `username` and `password` (or `token` in its place), or `token` alone (bearer; to Git first as a
 *  password), a CA of its own as `caCert`; Git also `githubApp`, a JSON document of appId, installationId, privateKey
 *  and, for a GitHub whose API is not where its host says, apiUrl; ssh: `sshKey` and `knownHosts`. */
const authSchema = z.strictObject({
  secretRef: secretRefSchema.describe(
    'Name of a Config in the same project with these secrets: token; username and password (or token); githubApp (JSON: appId, installationId, privateKey, optional apiUrl); sshKey and knownHosts; caCert.',
  ),
})

const SCP_FORM = /^[a-z_][-a-z0-9_.]*@[A-Za-z0-9][-A-Za-z0-9.]*:(?!\/\/)[^\s]+$/
const isUrlOf = (schemes: readonly string[]) => (text: string) =>
  schemes.some((scheme) => text.startsWith(`${scheme}://`)) && URL.canParse(text)
const NO_CREDENTIALS = 'must not contain a user name or password, because readers of the spec would see them'
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
    url: gitUrlSchema.describe(
      'URL of the Git repository: https://host/path, http://…, ssh://user@host/path or user@host:path, without a password.',
    ),
    // Without a default here: semver has none, and a default could not be distinguished from a written value.
    ref: z
      .string()
      .min(1)
      .max(255)
      .optional()
      .describe(
        'Branch, tag, full ref (refs/…), HEAD (the default branch of the repository), or full commit id. Default main, unless semver is set.',
      ),
    semver: semverRangeSchema
      .optional()
      .describe('Version range that selects the greatest matching tag, instead of ref: "^1.4", "~1.2.3", "1.x" or ">=1.2.0 <2.0.0".'),
    auth: authSchema.optional().describe('Credential for reading the source. Default: none.'),
    submodules: z.boolean().optional().describe('Read submodules. Default false: a repository with submodules is refused.'),
    submoduleCredentials: z
      .boolean()
      .optional()
      .describe('Send the credential of auth also for submodules on the same host. Default false.'),
    client: z
      .enum(['auto', 'library', 'cli'])
      .optional()
      .describe(
        'Git client. library: built in, for https and up to 96 MiB. cli: the git program, for ssh and larger repositories. Default auto: by the URL and the size.',
      ),
    verify: z
      .strictObject({
        keys: z
          .array(z.string().min(1).max(65_536))
          .min(1)
          .max(50)
          .describe(
            'Armored OpenPGP public keys, or SSH public keys in the form of authorized_keys: "ssh-ed25519 AAAA… alice@example.com".',
          ),
      })
      .optional()
      .describe(
        'Keys that must sign each commit. A commit without a valid signature is not rendered, and the last verified commit stays in use.',
      ),
  })
  .refine(({ ref, semver }) => semver === undefined || ref === undefined, {
    message: 'ref and semver exclude each other',
    path: ['semver'],
    when: isMapping,
  })

const helmRepositorySchema = z.strictObject({
  url: webUrlSchema.describe('URL of the folder of index.yaml: https://charts.example.com, without user name and password.'),
  auth: authSchema.optional().describe('Credential for reading the source. Default: none.'),
})

const ociSchema = z
  .strictObject({
    url: ociUrlSchema.describe('URL of the OCI repository: oci://host/path or oci://host:port/path, without a tag.'),
    tag: z.string().max(128).optional().describe('Tag, which may move: 6.5.2, stable.'),
    semver: semverRangeSchema.optional().describe('Version range that selects the greatest matching tag: "6.x" or ">=1.2.0 <2.0.0".'),
    digest: z
      .string()
      .regex(/^sha256:[0-9a-f]{64}$/, 'expected sha256: and 64 hex digits')
      .optional()
      .describe('Digest of the artifact: sha256: and 64 hex digits.'),
    auth: authSchema.optional().describe('Credential for reading the source. Default: none.'),
    insecure: z
      .boolean()
      .optional()
      .describe('Use plain HTTP, only to addresses in --source-addresses; for test registries. Default false.'),
  })
  .refine(({ tag, semver, digest }) => [tag, semver, digest].filter((one) => one !== undefined).length === 1, {
    message: 'expected one of tag, semver and digest',
    when: isMapping,
  })

/** Exactly one of the three is there. */
export const repositorySourceShape = {
  git: gitSchema.optional().describe('Git repository at one ref. Set exactly one of git, helm and oci.'),
  helm: helmRepositorySchema.optional().describe('Helm repository: charts listed in an index.yaml.'),
  oci: ociSchema.optional().describe('Chart, or artifact with manifests, in an OCI registry.'),
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
  repository: nameSchema.describe('Name of a Repository in the same project.'),
  path: treePathSchema
    .optional()
    .describe(
      'Folder in the Git repository or OCI artifact, relative to its root: apps/shop, or . for the root. It can be a template: overlays/{{ cluster.name }}.',
    ),
  chart: z
    .string()
    .regex(/^[a-zA-Z0-9][-a-zA-Z0-9_.]*$/, 'expected the name of a chart')
    .max(250)
    .optional()
    .describe('Name of a chart in the Helm repository.'),
  version: semverRangeSchema
    .optional()
    .describe('Version of the chart, or a range such as "^6" or "6.5.x". Default: the newest version that is not a pre-release.'),
}
interface Picked {
  path?: string | undefined
  chart?: string | undefined
  version?: string | undefined
}
export const picksOne = ({ path, chart }: Picked): boolean => (path === undefined) !== (chart === undefined)
export const PICKS_ONE = 'expected a path, or the chart of a Helm repository'
export const versionsChart = ({ chart, version }: Picked): boolean => version === undefined || chart !== undefined
export const VERSIONS_CHART = 'version applies to charts only; for Git and OCI sources set the version in the Repository'
