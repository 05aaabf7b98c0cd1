// Lists such as `Prune=false, Force=true` that Argo CD and Plural read from an annotation: order, spaces and case mean nothing.

export const parseSyncOptions = (value: string): ReadonlySet<string> =>
  new Set(value.split(',').map((option) => option.replaceAll(' ', '').toLowerCase()))
