// SPDX-License-Identifier: MIT
//
// Modules and libraries; see module.h.

#include "module.h"

#include "kernel.h"
#include "process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static LIST_HEAD(, CUlib_st) libraries = LIST_HEAD_INITIALIZER(libraries);

static CUresult module_add(CUmodule module, const struct image_variable *read)
{
    struct block_list *list = &module->context->module;
    struct module_variable *variable = calloc(1, sizeof *variable);
    struct block *block;

    if (!variable)
        return CUDA_ERROR_OUT_OF_MEMORY;
    uint64_t start = block_take(list, read->bytes, &block);
    variable->memory = start ? memory_insert(MEMORY_GLOBAL, start, read->bytes) : NULL;
    if (!variable->memory) {
        if (start)
            block_give(list, block, start, read->bytes);
        free(variable);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy(variable->name, read->name, sizeof variable->name);
    variable->memory->context = module->context;
    variable->memory->ordinal = module->context->ordinal;
    variable->memory->block = block;
    STAILQ_INSERT_TAIL(&module->variables, variable, of_module);
    return CUDA_SUCCESS;
}

static CUresult module_fill(CUmodule module, enum image_kind kind, const char *image)
{
    struct image_variable variable;
    struct overhead_needs needs = image_needs(kind, image);
    CUresult result = CUDA_SUCCESS;

    module->code_bytes = image_code_bytes(kind, image);
    if (module->code_bytes) {
        module->code_start =
            block_take(&module->context->module, module->code_bytes, &module->code_block);
        if (!module->code_start)
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (const char *at = image;
         result == CUDA_SUCCESS && image_next_variable(kind, &at, &variable);)
        result = module_add(module, &variable);
    if (result == CUDA_SUCCESS && !overhead_load(&module->context->overhead, &needs))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    return result;
}

CUresult module_load(CUcontext context, const char *image, CUmodule *module)
{
    enum image_kind kind = image_recognize(image);

    if (kind == IMAGE_NONE)
        return CUDA_ERROR_INVALID_IMAGE;
    CUmodule created = handle_create(HANDLE_MODULE, sizeof *created);
    if (!created)
        return CUDA_ERROR_OUT_OF_MEMORY;
    created->context = context;
    created->image = image_copy(image);
    STAILQ_INIT(&created->variables);
    LIST_INSERT_HEAD(&context->modules, created, of_context);
    CUresult result = created->image ? module_fill(created, kind, image) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result)
        module_unload(created);
    else
        *module = created;
    return result;
}

void module_unload(CUmodule module)
{
    struct block_list *list = &module->context->module;
    struct module_variable *variable;

    while ((variable = STAILQ_FIRST(&module->variables)) != NULL) {
        struct memory *memory = variable->memory;

        STAILQ_REMOVE_HEAD(&module->variables, of_module);
        block_give(list, memory->block, memory->range.start,
                   memory->range.end - memory->range.start);
        memory_remove(memory);
        free(variable);
    }
    if (module->code_start)
        block_give(list, module->code_block, module->code_start, module->code_bytes);
    kernel_end_module(module);
    free(module->image);
    LIST_REMOVE(module, of_context);
    handle_destroy(&module->handle);
}

CUresult module_start_context(CUcontext context)
{
    CUresult result = CUDA_SUCCESS;
    CUlibrary library;
    CUmodule module;

    LIST_FOREACH(library, &libraries, of_process)
    if (result == CUDA_SUCCESS && process.config.loads_eagerly)
        result = module_of_library(library, context, &module);
    return result;
}

void module_end_context(CUcontext context)
{
    while (!LIST_EMPTY(&context->modules))
        module_unload(LIST_FIRST(&context->modules));
}

const struct memory *module_find(CUmodule module, const char *name)
{
    const struct module_variable *variable;

    STAILQ_FOREACH(variable, &module->variables, of_module)
    if (strcmp(variable->name, name) == 0)
        return variable->memory;
    return NULL;
}

/* ---- libraries ---- */

static CUresult module_load_everywhere(CUlibrary library)
{
    CUresult result = CUDA_SUCCESS;
    CUcontext context;
    CUmodule module;

    LIST_FOREACH(context, &contexts, of_process)
    if (result == CUDA_SUCCESS && context->is_alive)
        result = module_of_library(library, context, &module);
    return result;
}

CUresult module_open_library(const char *image, CUlibrary *library)
{
    bool eager = process.config.loads_eagerly;

    if (eager && image_recognize(image) == IMAGE_NONE)
        return CUDA_ERROR_INVALID_IMAGE;
    CUlibrary opened = handle_create(HANDLE_LIBRARY, sizeof *opened);
    if (!opened)
        return CUDA_ERROR_OUT_OF_MEMORY;
    LIST_INSERT_HEAD(&libraries, opened, of_process);
    opened->image = image_copy(image);
    CUresult result = opened->image ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS && eager)
        result = module_load_everywhere(opened);
    if (result)
        module_close_library(opened);
    else
        *library = opened;
    return result;
}

void module_close_library(CUlibrary library)
{
    CUcontext context;

    LIST_FOREACH(context, &contexts, of_process)
    {
        CUmodule module = LIST_FIRST(&context->modules), next;

        for (; module; module = next) {
            next = LIST_NEXT(module, of_context);
            if (module->library == library)
                module_unload(module);
        }
    }
    kernel_end_library(library);
    LIST_REMOVE(library, of_process);
    free(library->image);
    handle_destroy(&library->handle);
}

CUresult module_of_library(CUlibrary library, CUcontext context, CUmodule *module)
{
    CUmodule found;

    LIST_FOREACH(found, &context->modules, of_context)
    if (found->library == library) {
        *module = found;
        return CUDA_SUCCESS;
    }
    CUresult result = module_load(context, library->image, module);
    if (result == CUDA_SUCCESS)
        (*module)->library = library;
    return result;
}

char *module_read_file(const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    long bytes;

    if (!file)
        return NULL;
    if (fseek(file, 0, SEEK_END) == 0 && (bytes = ftell(file)) >= 0) {
        rewind(file);
        text = calloc(1, (size_t)bytes + 1);
        if (text && fread(text, 1, (size_t)bytes, file) != (size_t)bytes) {
            free(text);
            text = NULL;
        }
    }
    fclose(file);
    return text;
}
