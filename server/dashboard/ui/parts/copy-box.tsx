// Something to copy into a terminal.
import { useState } from 'preact/hooks'
import { text } from '../words/first.ts'

export function CopyBox({ content }: { content: string }) {
  const [isCopied, setCopied] = useState(false)
  const copy = async () => {
    await navigator.clipboard.writeText(content).catch(() => {})
    setCopied(true)
    setTimeout(() => setCopied(false), 2_000)
  }
  return (
    <div class="copy-box">
      <pre tabIndex={0}>{content}</pre>
      <button type="button" onClick={copy}>
        {isCopied ? text.copy.copied : text.copy.copy}
      </button>
    </div>
  )
}
