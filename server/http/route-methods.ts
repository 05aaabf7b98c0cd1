// Which methods a path has. The router knows a path only together with its method, and would answer 404 to a method
// that the path does not have.
import { AppError } from '../../shared/runtime/error.ts'

export interface RouteMethods {
  /** Throws `method_not_allowed` for a path that other methods have. */
  check(method: string, pathname: string): void
}

export function createRouteMethods(routes: ReadonlyArray<{ method: string; path: string }>): RouteMethods {
  const exact = new Map<string, Set<string>>()
  const patterns = new Map<string, { expression: RegExp; methods: Set<string> }>()
  for (const { method, path } of routes) {
    if (!path.includes(':')) {
      exact.set(path, (exact.get(path) ?? new Set()).add(method))
      continue
    }
    const expression = new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/:\w+/g, '[^/]+')}$`)
    const held = patterns.get(path) ?? { expression, methods: new Set<string>() }
    held.methods.add(method)
    patterns.set(path, held)
  }
  const methodsOf = (pathname: string): ReadonlySet<string> => {
    const found = exact.get(pathname)
    if (found !== undefined) return found
    const methods = new Set<string>()
    for (const { expression, methods: own } of patterns.values())
      if (expression.test(pathname)) for (const method of own) methods.add(method)
    return methods
  }
  return {
    check(method, pathname) {
      const methods = methodsOf(pathname)
      if (methods.size === 0 || methods.has(method) || (method === 'HEAD' && methods.has('GET'))) return
      const allowed = [...methods].sort().join(', ')
      throw new AppError('method_not_allowed', {
        detail: `${method} is not supported by this path; expected ${allowed}`,
        extra: { allowed },
      })
    },
  }
}
