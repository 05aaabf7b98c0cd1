// The build of this program. scripts/build puts in version and commit; a run from source says so.
import packageJson from '../../package.json' with { type: 'json' }

declare const SKERRY_VERSION: string
declare const SKERRY_COMMIT: string

export const VERSION: string = typeof SKERRY_VERSION === 'string' ? SKERRY_VERSION : `${packageJson.version}-dev`
export const COMMIT: string = typeof SKERRY_COMMIT === 'string' ? SKERRY_COMMIT : 'source'

/** Verb with which a program starts itself once more, to open files that may stop the process that opens them. */
export const TRIAL_VERB = 'try-crdt-files'
