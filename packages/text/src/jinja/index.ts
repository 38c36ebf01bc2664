export { TemplateError } from './error.ts'
