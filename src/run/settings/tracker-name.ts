/** How trackers are named: `tensorboard:DIR`, `mlflow:URI[?experiment=NAME]`, `wandb[:[ENTITY/]PROJECT]`. */
export const trackerPattern =
  /^(?:tensorboard:.+|mlflow:https?:\/\/.+|wandb(?::[\w.-]+(?:\/[\w.-]+)?)?)$/
