// The name of one request: the client's own where it is fit to be shown, else a random one.
#pragma once

#include <string>
#include <string_view>

namespace whippet::serve {

// `given` is the header x-request-id. Others than 1 to 128 letters, digits and "-_.:" are not taken over.
std::string request_id(std::string_view given);

}  // namespace whippet::serve
