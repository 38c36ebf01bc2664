import { archives, journals } from './archives.ts'
import type { Attack } from './attack.ts'
import { doors } from './doors.ts'
import { modelOutputs } from './model-outputs.ts'
import { eventStreams, serverAnswers } from './server-answers.ts'
import { templates } from './templates.ts'
import { foreignText, tokenizerFiles } from './tokenizers.ts'

/** All of them; their shares add up to a thousand. */
export const attacks: readonly Attack[] = [
  modelOutputs,
  serverAnswers,
  eventStreams,
  doors,
  templates,
  foreignText,
  tokenizerFiles,
  journals,
  archives,
]
