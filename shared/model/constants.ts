// Words and numbers that the command line needs for its options, apart from the schemas: loading those takes longer
// than most commands.

/** Version of the schema of resources. */
export const API_VERSION = 'skerry.dev/v1'
/** Project of resources that name none. */
export const DEFAULT_PROJECT = 'default'
/** Items of one page of a list. */
export const LIST_LIMIT_MAX = 500
