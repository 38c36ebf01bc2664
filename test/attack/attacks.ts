import { archives, journals } from './archives.ts'
import type { Attack } from './attack.ts'
import { doors } from './doors.ts'
import { modelOutputs } from './model-outputs.ts'
import { patterns, schemas } from './schemas.ts'
import { eventStreams, serverAnswers } from './server-answers.ts'
import { services } from './services.ts'
import { templates } from './templates.ts'
import { foreignText, tokenizerFiles } from './tokenizers.ts'

/** All of them; their shares add up to a thousand. */
export const attacks: readonly Attack[] = [
  modelOutputs,
  serverAnswers,
  eventStreams,
  doors,
  services,
  templates,
  foreignText,
  tokenizerFiles,
  schemas,
  patterns,
  journals,
  archives,
]
