// Errors and warnings of a render: file and line, what is wrong, and the line itself.
import { text } from '../words/first.ts'

interface Problem {
  path: string
  message: string
  excerpt?: string | undefined
}

/** `title` '': what is above says what they are. */
export function ProblemList({ title, problems, tone = '' }: { title: string; problems: readonly Problem[]; tone?: string }) {
  if (problems.length === 0) return null
  return (
    <div class="problems">
      {title !== '' && <h3>{title}</h3>}
      <ul class="stack">
        {problems.map(({ path, message, excerpt }) => (
          <li key={`${path}${message}`} class={`note ${tone}`}>
            <p>
              <code>{path === '' ? text.repositories.whole : path}</code>
            </p>
            <p>{message}</p>
            {excerpt !== undefined && excerpt !== '' && <pre class="excerpt">{excerpt}</pre>}
          </li>
        ))}
      </ul>
    </div>
  )
}
