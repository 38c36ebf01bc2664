export { TemplateError, TemplateSyntaxError } from './error.ts'
export { markForeign, type TemplateInput } from './foreign.ts'
export type { Hole } from './hidden.ts'
export type { Limits, Moment } from './run.ts'
export {
  compileTemplate,
  type Rendering,
  type RenderOptions,
  type Template,
  type TemplateVariables,
  type TextRange,
} from './template.ts'
export type { TemplateText } from './template-text.ts'
