// The two databases a fleet store can be in.
export type Engine = 'sqlite' | 'postgres'
