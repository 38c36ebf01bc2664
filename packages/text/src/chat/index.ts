export { describeDiagnosis, type Section } from './diagnosis.ts'
export { type Diagnosis, examine } from './doctor.ts'
export { type ModelFiles, modelFileNames, readModelFolder } from './model-folder.ts'
export { createRenderer, type ModelRenderer, type RendererOptions } from './renderer.ts'
