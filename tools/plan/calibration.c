#define _DEFAULT_SOURCE // getloadavg
#include "plan/calibration.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/linux_processor.h"
#include "base/str.h"
#include "belfry/estimator.h"

enum { PROCESSOR_TEXT = 128 };

size_t bel_machine_list(bel_machine_figures *machine, bel_figure out_list[BEL_FIGURES_MOST])
{
    bel_cost_rates *r = &machine->rates;
    const bel_figure list[] = {{"add_ns", &r->add},
                               {"shm_exchange_ns", &r->media[BEL_COST_SHM].exchange},
                               {"shm_wake_ns", &r->media[BEL_COST_SHM].wake},
                               {"shm_message_ns", &r->media[BEL_COST_SHM].message},
                               {"shm_byte_ns", &r->media[BEL_COST_SHM].byte},
                               {"grpc_exchange_ns", &r->media[BEL_COST_GRPC].exchange},
                               {"grpc_wake_ns", &r->media[BEL_COST_GRPC].wake},
                               {"grpc_message_ns", &r->media[BEL_COST_GRPC].message},
                               {"grpc_byte_ns", &r->media[BEL_COST_GRPC].byte},
                               {"file_byte_ns", &machine->file_byte_ns},
                               {"load", &machine->load}};
    memcpy(out_list, list, sizeof list);
    return sizeof list / sizeof *list;
}

size_t bel_steps_list(bel_step_figures *steps, bel_figure out_list[BEL_FIGURES_MOST])
{
    const bel_figure list[] = {{"compute_ns", &steps->compute_ns},
                               {"pass_ns", &steps->pass_ns},
                               {"input_ns", &steps->input_ns},
                               {"start_ns", &steps->start_ns},
                               {"examples", &steps->examples},
                               {"steps", &steps->steps},
                               {"load", &steps->load}};
    memcpy(out_list, list, sizeof list);
    return sizeof list / sizeof *list;
}

static char *file_of(const char *folder, const char *name)
{
    return bel_strf("%s/%s.json", folder, name);
}

static bool read_figures(const bel_json_value *root, const bel_figure *list, size_t count)
{
    char processor[PROCESSOR_TEXT];
    const char *version, *there;
    double way;
    bel_linux_processor_name(processor, sizeof processor);
    bool good = bel_json_string(root, "belfry", &version) &&
                bel_json_string(root, "processor", &there) && bel_json_f64(root, "way", &way) &&
                strcmp(version, bel_version()) == 0 && strcmp(there, processor) == 0 &&
                way == BEL_CALIBRATION_WAY;
    for (size_t i = 0; i < count && good; i++)
        good = bel_json_f64(root, list[i].name, list[i].value) && *list[i].value >= 0;
    return good;
}

bool bel_calibration_read(const char *folder, const char *name, const bel_figure *list,
                          size_t count)
{
    char *path = file_of(folder, name), *text = NULL;
    size_t size = 0;
    bel_json *json = NULL;
    bel_status *status = bel_file_read(path, &text, &size);
    if (status == NULL) status = bel_json_parse(text, size, path, &json);
    bool good = status == NULL && read_figures(bel_json_root(json), list, count);
    bel_status_ignore(status); // measured anew
    bel_json_destroy(json);
    bel_free(text);
    bel_free(path);
    return good;
}

bel_status *bel_calibration_write(const char *folder, const char *name, const bel_figure *list,
                                  size_t count)
{
    char processor[PROCESSOR_TEXT];
    bel_linux_processor_name(processor, sizeof processor);
    bel_str text = {0};
    bel_str_puts(&text, "{\"belfry\":");
    bel_json_write_string(&text, bel_version());
    bel_str_puts(&text, ",\"processor\":");
    bel_json_write_string(&text, processor);
    bel_str_printf(&text, ",\"way\":%d", BEL_CALIBRATION_WAY);
    for (size_t i = 0; i < count; i++) {
        bel_str_printf(&text, ",\"%s\":", list[i].name);
        bel_json_write_number(&text, *list[i].value);
    }
    bel_str_puts(&text, "}\n");
    char *path = file_of(folder, name);
    bel_status *status = bel_dir_create(folder);
    if (status == NULL) status = bel_file_write_atomic(path, text.text, text.length);
    bel_free(path);
    bel_str_deinit(&text);
    return status;
}

double bel_machine_load(void)
{
    double load = 0;
    return getloadavg(&load, 1) == 1 ? load : 0;
}
