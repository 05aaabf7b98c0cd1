// Lists that tools read from annotations, with commas between.

export const ARGO_OPTIONS = 'argocd.argoproj.io/sync-options'
export const PLURAL_OPTIONS = 'deployment.plural.sh/sync-options'

/** Such as `Prune=false, Force=true` under these two keys: order, spaces and case mean nothing. */
export const parseSyncOptions = (value: string): ReadonlySet<string> =>
  new Set(value.split(',').map((option) => option.replaceAll(' ', '').toLowerCase()))

/** The words of other lists, as they are written. */
export const wordsIn = (text: string): string[] =>
  text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '')
