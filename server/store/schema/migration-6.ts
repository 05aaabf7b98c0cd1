// Schema 6: API tokens that expire, and tokens that replace another one.
import { addNumbers, addTexts, type Ddl } from './ddl.ts'

export async function migrateTo6(ddl: Ddl): Promise<void> {
  await addNumbers(ddl, 'api_tokens', ['expires_ms'])
  await addTexts(ddl, 'api_tokens', ['replaces'])
}
