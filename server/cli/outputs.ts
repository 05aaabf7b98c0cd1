// Forms of output and other words of options, apart from what they choose between.

export const OUTPUTS = ['json', 'yaml', 'wide', 'name'] as const
export type Output = (typeof OUTPUTS)[number] | undefined

/** Keys of a server that can be replaced. */
export const ROTATED_KEYS = ['signing', 'mac', 'secrets'] as const
