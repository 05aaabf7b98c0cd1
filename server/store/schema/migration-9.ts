// Schema 9: API tokens have a role, say who made them, and when and from where they were last used.
import { addNumbers, addTexts, type Ddl } from './ddl.ts'

export async function migrateTo9(ddl: Ddl): Promise<void> {
  // Tokens without a role are those of before: admins.
  await addTexts(ddl, 'api_tokens', ['role', 'created_by', 'last_used_from'])
  await addNumbers(ddl, 'api_tokens', ['last_used_ms'])
}
